// Which operators run as one of PyTorch's CPU kernels inside the program instead of as StableHLO. The rules are
// measured; they are all here.
#pragma once

#include <string_view>

#include "base/tensor_type.h"

namespace torch_pjrt {

// Whether programs call ATen kernels: the plugin is XLA's for the CPU and takes our handler, and neither
// XLA_ATEN_KERNELS=0 nor set_host_kernels_wanted says otherwise. A part of what a program depends on.
bool host_kernels_on();
// exec/runtime.cpp says what the plugin can do.
void set_host_kernels_available(bool is_available);
bool host_kernels_available();
// For comparison. Returns what it was before. Does not change programs that are compiled.
bool set_host_kernels_wanted(bool is_wanted);

// lhs [batch, m, k] times rhs [batch, k, n].
bool prefers_host_matmul(DType dtype, int64_t batch, int64_t m, int64_t k, int64_t n);
// input [N, C, *], weight [O, C / groups, *]; also for the gradients.
bool prefers_host_convolution(const TensorType& input, const TensorType& weight);
// input [N, C, H, W]; also for the gradient.
bool prefers_host_max_pool(const TensorType& input);
bool prefers_host_attention(DType dtype);
// A fused optimizer's step of parameters of this dtype, which have so many elements together.
bool prefers_host_optimizer(DType dtype, int64_t num_elements);
// An operator that is recorded as a call of PyTorch's kernel although it has a lowering.
struct KernelRule {
  std::string_view name;     // without overload and trailing underscore
  int64_t min_elements = 0;  // of the largest argument
  bool of_rows = false;      // only where its second argument, `dim`, is the last dimension
  bool can_fail = false;     // for what the values are
};
// nullptr for most operators.
const KernelRule* find_kernel_rule(std::string_view name);
// Statistics and backward of batch norm in training; input [N, C, *].
bool prefers_host_batch_norm(const TensorType& input);
// Also for the gradients.
bool prefers_host_layer_norm(const TensorType& input);

}  // namespace torch_pjrt
