// torch.autocast("xla"): PyTorch's own operator lists, as CUDA uses them, for the AutocastXLA key.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace torch_pjrt {
namespace {

// PyTorch's lists spell their types without a namespace.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

// Operators on no list run in the type of their inputs.
TORCH_LIBRARY_IMPL(_, AutocastXLA, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

#define KERNEL_XLA(...) KERNEL(c10::DeviceType::XLA, __VA_ARGS__)
#define KERNEL_XLA_LOWER_PRECISION(...) KERNEL_XLA(__VA_ARGS__, lower_precision_fp)
#define KERNEL_XLA_FP32(...) KERNEL_XLA(__VA_ARGS__, fp32)
#define KERNEL_XLA_FP32_SET_OPT_DTYPE(...) KERNEL_XLA(__VA_ARGS__, fp32_set_opt_dtype)
#define KERNEL_XLA_PROMOTE(...) KERNEL_XLA(__VA_ARGS__, promote)
#define KERNEL_XLA_DIFFERENT_REDISPATCH_SIGNATURE(...) \
  KERNEL_DIFFERENT_REDISPATCH_SIGNATURE(c10::DeviceType::XLA, __VA_ARGS__)

TORCH_LIBRARY_IMPL(aten, AutocastXLA, m) {
  AT_FORALL_LOWER_PRECISION_FP(KERNEL_XLA_LOWER_PRECISION)
  AT_FORALL_FP32(KERNEL_XLA_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(KERNEL_XLA_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_XLA_DIFFERENT_REDISPATCH_SIGNATURE)
  AT_FORALL_PROMOTE(KERNEL_XLA_PROMOTE)
  // CUDA refuses this loss because float16 overflows in it; in float32, as on CPU, it is safe.
  KERNEL_XLA(binary_cross_entropy, fp32)
}

}  // namespace
}  // namespace torch_pjrt
