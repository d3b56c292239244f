// out= tensors that do not have the size of the result: eager PyTorch resizes them, and warns.
#pragma once

#include "torch/call_plan.h"

namespace torch_pjrt {

// Gives such outputs the strides that the CPU's kernel leaves, since meta kernels forget the order of dimensions, and
// the plan what that kernel warns of. Throws what it throws about their sizes.
void follow_cpu_resizing(CallPlan& plan, const c10::OperatorHandle& op, const OpInfo& info,
                         c10::ArrayRef<c10::IValue> arguments);

}  // namespace torch_pjrt
