// Plans for operators without a lowering: PyTorch's CPU kernel, called inside the program (ops/aten_call.h).
#pragma once

#include "torch/call_plan.h"

namespace torch_pjrt {

// Whether calls of this operator may be recorded as calls of its kernel: its results are tensors of their own whose
// sizes do not depend on values, it takes the generator that it draws from, if any, and the kernel is not written in
// Python: a wait for XLA may hold Python's lock.
bool is_callable_in_program(const c10::OperatorHandle& op, const OpInfo& info);

// `info` is OpInfo::of_aten_call. Types, sizes and strides are those that the CPU's kernel gives for zeros, where it
// takes them and they are few; else those of PyTorch's meta kernel. fallback_reason says when neither tells. Runs other
// operators, perhaps Python ones: call it without the lock.
CallPlan make_aten_call_plan(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                             Hash128 hash);

}  // namespace torch_pjrt
