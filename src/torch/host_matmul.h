// Matrix products of host calls.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_pjrt {

// lhs [m, k] times rhs [k, n] into `out` [m, n], or the same with a batch in front. Any strides.
void host_matmul(const at::Tensor& lhs, const at::Tensor& rhs, at::Tensor& out);

}  // namespace torch_pjrt
