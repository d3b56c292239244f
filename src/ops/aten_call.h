// The lowering of every operator that has none of its own: PyTorch's CPU kernel, as a host call in the program.
#pragma once

#include "ops/registry.h"

namespace torch_pjrt {

// The entry of signatures that the recorder makes for such a call. Their numbers are run-time inputs, and their
// arguments are all of the schema's, the out= ones as tensors without an operand that have a dtype.
const OpEntry& aten_call_entry();
// The same for an operator that draws from a generator: in the program it has one of its own, which starts from the
// call's seed and offset.
const OpEntry& aten_random_call_entry();
// The same for an operator without results, which is called for what it throws. Its node has one for the graph to hold
// on to: a 0-dim bool without a meaning.
const OpEntry& aten_check_entry();
bool is_aten_call(const OpEntry& entry);

}  // namespace torch_pjrt
