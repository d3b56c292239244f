// Conditions on arguments that the memoised plan of a call cannot hold, because it does not depend on numbers' values.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include "torch/op_info.h"

namespace torch_pjrt {

// False when eager PyTorch refuses these numbers.
using ArgumentCheck = bool (*)(c10::ArrayRef<c10::IValue> arguments);

// The check of an operator overload ("aten::bernoulli_", "float"); nullptr for most.
ArgumentCheck find_check(const std::string& name, const std::string& overload);

// Whether PyTorch lets the operator's `indices` be on the CPU while self is elsewhere.
bool takes_cpu_indices(const std::string& base_name);
// Brings such indices to self's device; the `num_arguments` last values of the stack are the call's.
void move_cpu_indices(const OpInfo& info, torch::jit::Stack& stack, size_t num_arguments);

}  // namespace torch_pjrt
