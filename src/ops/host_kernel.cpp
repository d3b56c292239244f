#include "ops/host_kernel.h"

#include <atomic>

#include "base/env.h"

namespace torch_pjrt {
namespace {

std::atomic<bool> g_is_available{false};

std::atomic<bool>& wanted() {
  static std::atomic<bool> is_wanted{env_flag("XLA_ATEN_KERNELS", true)};
  return is_wanted;
}

bool is_single_or_double(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

}  // namespace

bool host_kernels_on() {
  return g_is_available.load(std::memory_order_relaxed) && wanted().load(std::memory_order_relaxed);
}

void set_host_kernels_available(bool is_available) { g_is_available = is_available; }

bool host_kernels_available() { return g_is_available; }

bool set_host_kernels_wanted(bool is_wanted) { return wanted().exchange(is_wanted); }

bool prefers_host_matmul(DType dtype, int64_t batch, int64_t m, int64_t k, int64_t n) {
  // XLA compiles small products into the program; a call costs 2 us.
  constexpr int64_t kMinProducts = int64_t{1} << 20;
  return host_kernels_on() && is_single_or_double(dtype) && batch * m * n * k >= kMinProducts;
}

bool prefers_host_convolution(const TensorType& input, const TensorType& weight) {
  return host_kernels_on() && is_single_or_double(input.dtype) && input.rank() >= 3 && input.rank() <= 5 &&
         input.numel() > 0 && weight.numel() > 0;
}

bool prefers_host_batch_norm(const TensorType& input) {
  // XLA's sums over all dimensions but the last are not vectorised.
  constexpr int64_t kMinElements = int64_t{1} << 16;
  return host_kernels_on() && input.dtype == DType::kF32 && input.rank() == 4 && input.numel() >= kMinElements;
}

bool prefers_host_max_pool(const TensorType& input) {
  constexpr int64_t kMinElements = int64_t{1} << 16;
  return host_kernels_on() && input.dtype == DType::kF32 && input.rank() == 4 && input.numel() >= kMinElements;
}

bool prefers_host_attention(DType dtype) { return host_kernels_on() && is_single_or_double(dtype); }

}  // namespace torch_pjrt
