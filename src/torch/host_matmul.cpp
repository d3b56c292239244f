#include "torch/host_matmul.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <dlfcn.h>

#include <optional>

#include "torch/host_team.h"

namespace torch_pjrt {
namespace {

using MkldnnMatmul = void(const at::Tensor& lhs, const at::Tensor& rhs, const at::Tensor& out, float beta, float alpha);

// at::native::mkldnn_matmul: ATen's own entry to oneDNN, which at::mm takes for the half types only. For float32 it
// takes MKL, which does not use AVX-512 on processors of other makers: 110 against 250 GFLOP/s a core there. No header
// declares it, so it is looked up, and may be missing.
MkldnnMatmul* find_mkldnn_matmul() {
  static const auto function =
      reinterpret_cast<MkldnnMatmul*>(dlsym(RTLD_DEFAULT, "_ZN2at6native13mkldnn_matmulERKNS_6TensorES3_S3_ff"));
  return function;
}

// oneDNN looks its kernel up at each call, which takes 10 us.
bool prefers_mkldnn(const at::Tensor& lhs, const at::Tensor& out) {
  constexpr int64_t kMinProducts = int64_t{1} << 21;
  return out.scalar_type() == at::kFloat && out.numel() * lhs.size(-1) >= kMinProducts;
}

// About 100 us of one core.
constexpr int64_t kMinProductsForThreads = int64_t{1} << 23;

}  // namespace

void host_matmul(const at::Tensor& lhs, const at::Tensor& rhs, at::Tensor& out) {
  std::optional<SingleThreaded> alone;
  if (out.numel() * lhs.size(-1) < kMinProductsForThreads) alone.emplace();
  if (auto* mkldnn_matmul = find_mkldnn_matmul(); mkldnn_matmul != nullptr && prefers_mkldnn(lhs, out)) {
    return mkldnn_matmul(lhs, rhs, out, 0, 1);
  }
  if (out.dim() == 2) {
    at::mm_out(out, lhs, rhs);
  } else {
    at::bmm_out(out, lhs, rhs);
  }
}

}  // namespace torch_pjrt
