// Meta kernels in C++. Over most of them PyTorch lays others that are written in Python, and the first of those that a
// process calls imports sympy and torch._dynamo: a second and 70 MB.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_pjrt {

enum class NativeMeta { kTaken, kNone, kRefused };

// Calls `op` on `stack`, whose tensors are meta tensors, without Python: a C++ meta kernel, the shape function of a
// structured kernel, or a composite that calls only such. Unless it is taken, `stack` and the tensors that it mutates
// are not to be used.
NativeMeta run_native_meta(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace torch_pjrt
