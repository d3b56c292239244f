// The lowering of every operator that has none of its own: PyTorch's CPU kernel, as a host call in the program.
#pragma once

#include "ops/registry.h"

namespace torch_pjrt {

// The entry of signatures that the recorder makes for such a call. Their numbers are run-time inputs, and their
// arguments are all of the schema's, the out= ones as tensors without an operand that have a dtype.
const OpEntry& aten_call_entry();

}  // namespace torch_pjrt
