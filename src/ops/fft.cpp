// Fourier transforms: ATen's three operators over any dimensions, of which StableHLO transforms up to three trailing
// ones at once.
#include <algorithm>
#include <cmath>

#include "ops/expression.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::FftType;
using stablehlo::Value;
using stablehlo::Values;

// ATen's fft_norm_mode.
constexpr int64_t kByRootN = 1;
constexpr int64_t kByN = 2;

Dims transformed_dims(const LoweringContext& ctx, int64_t rank) {
  Dims dims = ctx.ints("dim");
  for (int64_t& dim : dims) dim += dim < 0 ? rank : 0;
  return dims;
}

// `dims`, at most three, of which the last is the one that a real transform halves.
Value transform(Builder& b, Value x, FftType type, const Dims& dims, const Dims& lengths) {
  Dims order;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) order.push_back(i);
  }
  order.insert(order.end(), dims.begin(), dims.end());
  return b.transpose(b.fft(b.transpose(x, order), type, lengths), inverse_permutation(order));
}

Value transform_complex(Builder& b, Value x, Dims dims, bool forward) {
  while (!dims.empty()) {
    const auto first = dims.end() - static_cast<std::ptrdiff_t>(std::min<size_t>(dims.size(), 3));
    const Dims part(first, dims.end());
    Dims lengths;
    for (const int64_t dim : part) lengths.push_back(x.dim(dim));
    x = transform(b, x, forward ? FftType::kFft : FftType::kIfft, part, lengths);
    dims.erase(first, dims.end());
  }
  return x;
}

// XLA's inverse transforms divide by `n`, the number of points; ATen says by what to divide in either direction.
Value normalize(LoweringContext& ctx, Value x, int64_t n, bool forward) {
  const int64_t mode = ctx.integer("normalization");
  const auto points = static_cast<double>(n);
  double factor = forward ? 1.0 : points;
  if (mode == kByRootN) factor /= std::sqrt(points);
  if (mode == kByN) factor /= points;
  return factor == 1.0 ? x : ctx.b.multiply(x, ctx.b.splat_like(factor, x));
}

int64_t count_points(const Value& x, const Dims& dims) {
  int64_t n = 1;
  for (const int64_t dim : dims) n *= x.dim(dim);
  return n;
}

Value input(LoweringContext& ctx) {
  const Value x = ctx.tensor("self");
  if (x.numel() == 0) ctx.decline("an empty tensor");
  return x;
}

Values lower_c2c(LoweringContext& ctx) {
  const Value x = input(ctx);
  const Dims dims = transformed_dims(ctx, x.rank());
  const bool forward = ctx.flag("forward");
  return {normalize(ctx, transform_complex(ctx.b, x, dims, forward), count_points(x, dims), forward)};
}

Values lower_r2c(LoweringContext& ctx) {
  Value x = input(ctx);
  const Dims dims = transformed_dims(ctx, x.rank());
  const int64_t n = count_points(x, dims);
  if (!ctx.flag("onesided")) {
    x = ctx.b.convert(x, x.dtype() == DType::kF64 ? DType::kC128 : DType::kC64);
    return {normalize(ctx, transform_complex(ctx.b, x, dims, true), n, true)};
  }
  const Value half = transform(ctx.b, x, FftType::kRfft, {dims.back()}, {x.dim(dims.back())});
  const Value whole = transform_complex(ctx.b, half, Dims(dims.begin(), dims.end() - 1), true);
  return {normalize(ctx, whole, n, true)};
}

Values lower_c2r(LoweringContext& ctx) {
  const Value x = input(ctx);
  const Dims dims = transformed_dims(ctx, x.rank());
  const int64_t size = ctx.integer("last_dim_size");
  if (x.dim(dims.back()) != size / 2 + 1) ctx.decline("a last dimension of another size than half the signal's");
  const Dims others(dims.begin(), dims.end() - 1);
  const Value rows = transform_complex(ctx.b, x, others, false);
  const Value real = transform(ctx.b, rows, FftType::kIrfft, {dims.back()}, {size});
  return {normalize(ctx, real, count_points(x, others) * size, false)};
}

}  // namespace

const OpTable& fft_ops() {
  static const OpTable table = {
      {"aten::_fft_c2c", lower_c2c},
      {"aten::_fft_r2c", lower_r2c},
      {"aten::_fft_c2r", lower_c2r},
  };
  return table;
}

}  // namespace torch_pjrt
