// The results of operators whose only meta kernels are written in Python; see native_meta.h.
#pragma once

#include <ATen/core/operator_name.h>
#include <ATen/core/stack.h>

#include <exception>

namespace torch_pjrt {

// There is no way without Python.
struct NoNativeMeta : std::exception {};

// Replaces the arguments, whose tensors are meta tensors, by the results. Knows them for the usual arguments, and
// throws NoNativeMeta for the others, which the Python kernel judges.
using MetaRule = void (*)(torch::jit::Stack&);

// nullptr when there is none.
MetaRule find_meta_rule(const c10::OperatorName& name);

}  // namespace torch_pjrt
