#include "torch/host_matmul.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <mutex>

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

// On Intel's both are as fast, and MKL is faster where a product is small or its operands are parts of matrices.
bool prefers_mkldnn(at::ScalarType type, int64_t num_products) {
  // oneDNN looks its kernel up at each call, which takes 10 us.
  constexpr int64_t kMinProducts = int64_t{1} << 21;
  static const bool is_intel = __builtin_cpu_is("intel") != 0;
  return !is_intel && type == at::kFloat && num_products >= kMinProducts;
}

// About 50 us of one core.
constexpr int64_t kMinProductsOfShare = int64_t{1} << 22;

// A piece of the result for each of several shares: so many rows and columns of pieces that their operands are the
// least to read together.
struct Grid {
  int64_t rows = 1, columns = 1;

  Grid(int64_t num_pieces, int64_t num_rows, int64_t num_columns) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t i = 1; i <= num_pieces; ++i) {
      const int64_t j = num_pieces / i;
      const int64_t read = num_rows * j + num_columns * i;
      if (num_pieces % i != 0 || read >= least) continue;
      least = read;
      rows = i;
      columns = j;
    }
  }
};

at::Tensor part(const at::Tensor& x, int64_t dim, int64_t i, int64_t count) {
  const int64_t begin = x.size(dim) * i / count;
  return x.narrow(dim, begin, x.size(dim) * (i + 1) / count - begin);
}

}  // namespace

void host_matmul(const at::Tensor& lhs, const at::Tensor& rhs, at::Tensor& out) {
  const int64_t num_products = out.numel() * lhs.size(-1);
  if (auto* mkldnn_matmul = find_mkldnn_matmul();
      mkldnn_matmul != nullptr && prefers_mkldnn(out.scalar_type(), num_products)) {
    // It would copy parts of matrices, so it is not cut into shares.
    const std::lock_guard lock(openmp_team());
    return mkldnn_matmul(lhs, rhs, out, 0, 1);
  }
  const int64_t num_shares = std::clamp<int64_t>(num_products / kMinProductsOfShare, 1, num_sharing_threads());
  if (out.dim() == 3) {
    const int64_t count = std::min(num_shares, out.size(0));
    return run_shares(count, [&](int64_t i) {
      at::Tensor piece = part(out, 0, i, count);
      at::bmm_out(piece, part(lhs, 0, i, count), part(rhs, 0, i, count));
    });
  }
  const Grid grid(num_shares, out.size(0), out.size(1));
  run_shares(num_shares, [&](int64_t i) {
    const int64_t row = i / grid.columns, column = i % grid.columns;
    at::Tensor piece = part(part(out, 0, row, grid.rows), 1, column, grid.columns);
    at::mm_out(piece, part(lhs, 0, row, grid.rows), part(rhs, 1, column, grid.columns));
  });
}

}  // namespace torch_pjrt
