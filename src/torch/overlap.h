// Memory that an operator writes and that it meets twice: in one argument (an expanded tensor) or in two.
//
// A recorded operator reads everything before it writes, so overlap of two arguments is harmless here; but eager
// PyTorch refuses it, and so a script must hear of it. Of elements that one argument has in common, eager PyTorch
// refuses most writes too, and the others leave whatever its loop wrote last.
#pragma once

#include <ATen/core/ivalue.h>

#include "base/hash.h"
#include "torch/op_info.h"

namespace torch_pjrt {

// Makes the key of a call depend on how its written arguments share memory with the others. List elements are compared
// with the element at the same place, as _foreach_ operators pair them.
void mix_overlaps(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments, Hash128& hash);

// Whether the call writes elements that lie in one place, and perhaps not all the same.
bool writes_shared_elements(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

// Whether eager PyTorch may refuse the call for it.
bool may_overlap(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

}  // namespace torch_pjrt
