// Checks of indices at the call, where eager PyTorch throws, too: of those that were uploaded.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/value_check.h"

namespace torch_pjrt {

// Throws the check's error where an element of `index`, an xla tensor, is out of range. Of what a program computes
// nothing is known here: the program checks it. Needs lazy::mutex().
void check_if_known(const OperandCheck& check, const at::Tensor& index);

}  // namespace torch_pjrt
