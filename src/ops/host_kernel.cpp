#include "ops/host_kernel.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "base/env.h"

namespace torch_pjrt {
namespace {

std::atomic<bool> g_is_available{false};

std::atomic<bool>& wanted() {
  static std::atomic<bool> is_wanted{env_flag("XLA_ATEN_KERNELS", true)};
  return is_wanted;
}

// What XLA compiles to loops that are neither vectorised nor shared between threads; benchmarks/operators.py shows it.
// From here on a kernel was at least twice as fast, and it starts no thread for less.
constexpr int64_t kManyElements = int64_t{1} << 12;

constexpr KernelRule kKernelRules[] = {
    {"aten::cumsum", kManyElements, /*of_rows=*/true},
    {"aten::cumprod", kManyElements, /*of_rows=*/true},
    {"aten::logcumsumexp", 0},
    {"aten::grid_sampler_2d", kManyElements},
    // Which of equal elements comes first is the CPU's choice; but for `sort` faster, too.
    {"aten::sort", 0},
    {"aten::topk", 0},
    {"aten::kthvalue", 0},
    {"aten::median", 0},
    {"aten::nanmedian", 0},
    {"aten::mode", 0},
    // Results are the CPU's to the last bit, and so are strides and errors.
    {"aten::linalg_qr", 0},
    {"aten::geqrf", 0},
    {"aten::linalg_householder_product", 0},
    {"aten::_linalg_svd", 0, /*of_rows=*/false, /*can_fail=*/true},
    {"aten::_linalg_eigh", 0, /*of_rows=*/false, /*can_fail=*/true},
    // Their strides too, and two to three times as fast.
    {"aten::_fft_c2c", 0},
    {"aten::_fft_c2r", 0},
    {"aten::_fft_r2c", 0},
};

bool is_single_or_double(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

}  // namespace

bool host_kernels_on() {
  return g_is_available.load(std::memory_order_relaxed) && wanted().load(std::memory_order_relaxed);
}

void set_host_kernels_available(bool is_available) { g_is_available = is_available; }

bool host_kernels_available() { return g_is_available; }

bool set_host_kernels_wanted(bool is_wanted) { return wanted().exchange(is_wanted); }

const KernelRule* find_kernel_rule(std::string_view name) {
  const auto* const rule = std::find_if(std::begin(kKernelRules), std::end(kKernelRules),
                                        [&](const KernelRule& rule) { return rule.name == name; });
  return rule == std::end(kKernelRules) ? nullptr : rule;
}

bool prefers_host_matmul(DType dtype, int64_t batch, int64_t m, int64_t k, int64_t n) {
  // XLA compiles small products into the program; a call costs 2 us.
  constexpr int64_t kMinProducts = int64_t{1} << 20;
  // Of half types it converts; the others it multiplies one by one.
  const bool converts = dtype == DType::kBF16 || dtype == DType::kF16;
  return host_kernels_on() && !converts && batch * m * n * k >= kMinProducts;
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

bool prefers_host_layer_norm(const TensorType& input) {
  // XLA makes six loops of it, and nine of its gradients.
  constexpr int64_t kMinElements = int64_t{1} << 14;
  return host_kernels_on() && input.dtype == DType::kF32 && input.numel() >= kMinElements;
}

bool prefers_host_max_pool(const TensorType& input) {
  constexpr int64_t kMinElements = int64_t{1} << 16;
  return host_kernels_on() && input.dtype == DType::kF32 && input.rank() == 4 && input.numel() >= kMinElements;
}

bool prefers_host_optimizer(DType dtype, int64_t num_elements) {
  // XLA's loops are quicker for many small parameters: the call handles each of their tensors.
  constexpr int64_t kMinElements = int64_t{1} << 19;
  return host_kernels_on() && is_single_or_double(dtype) && num_elements >= kMinElements;
}

bool prefers_host_attention(DType dtype) { return host_kernels_on() && is_single_or_double(dtype); }

}  // namespace torch_pjrt
