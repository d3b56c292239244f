// Operators that make tensors from sizes and numbers, and masks of matrices.
#include <algorithm>
#include <cmath>

#include "ops/cast.h"
#include "ops/elementwise.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Value;
using stablehlo::Values;

// A number argument as one value of the output's type.
Value filled(LoweringContext& ctx, std::string_view name) {
  const TensorType& type = ctx.output();
  Value number;
  if (ctx.is_tensor(name)) {
    number = cast(ctx.b, ctx.tensor(name), type.dtype);
  } else {
    number = ctx.operand(name, type.dtype);
  }
  return ctx.b.broadcast_to(ctx.b.reshape(number, {}), type.dims);
}

Values lower_fill(LoweringContext& ctx) { return {filled(ctx, "value")}; }
Values lower_zero(LoweringContext& ctx) { return {ctx.b.splat(0, ctx.output())}; }
Values lower_full(LoweringContext& ctx) { return {filled(ctx, "fill_value")}; }
Values lower_scalar_tensor(LoweringContext& ctx) { return {filled(ctx, "s")}; }

bool is_whole(double value) { return value == std::trunc(value) && std::abs(value) < 0x1p53; }

// start + i * step. ATen computes floats in float64 and rounds each element.
Values lower_arange(LoweringContext& ctx) {
  const TensorType& type = ctx.output();
  double start = ctx.real("start", 0.0);
  double step = ctx.real("step", 1.0);
  if (!is_floating(type.dtype)) {
    start = std::trunc(start);
    step = std::trunc(step);
  }
  const double last = start + step * static_cast<double>(type.numel());
  const bool in_integers = is_whole(start) && is_whole(step) && is_whole(last);
  const bool fits_32_bits = std::abs(start) < 0x1p31 && std::abs(last) < 0x1p31;
  const DType compute = !in_integers ? DType::kF64 : fits_32_bits ? DType::kS32 : DType::kS64;
  const Expr position(ctx.b, ctx.b.iota({compute, type.dims}, 0));
  Expr result = step == 1.0 ? position : position * step;
  if (start != 0.0) result = result + start;
  return {cast(ctx.b, result, type.dtype)};
}

// `steps` numbers from start to end, both included; the second half is counted from the end, as in ATen. Bounds and
// step are rounded to `dtype` and the numbers computed in `compute`.
Expr linear_spaced(LoweringContext& ctx, DType dtype, DType compute) {
  const Dims dims = {ctx.integer("steps")};
  const auto bound = [&](std::string_view name) {
    return Expr(ctx.b, ctx.b.reshape(cast(ctx.b, ctx.operand(name, dtype), compute), {}));
  };
  const Expr start = bound("start");
  const Expr end = bound("end");
  const int64_t steps = dims[0];
  if (steps <= 1) return {ctx.b, ctx.b.broadcast_to(start, dims)};
  // XLA multiplies by the reciprocal of a divisor that it knows, and integers would miss their places.
  const Value intervals = start.like(static_cast<double>(steps - 1)).value();
  Expr step = (end - start) / Expr(ctx.b, ctx.b.optimization_barrier({intervals})[0]);
  if (is_reduced_floating(dtype)) step = step.convert(dtype).convert(compute);
  const Expr index(ctx.b, ctx.b.iota({DType::kS32, dims}, 0));
  const Expr position = index.convert(compute);
  const Expr from_start = start + step * position;
  const Expr from_end = end - step * (static_cast<double>(steps - 1) - position);
  return select(index < static_cast<double>(steps / 2), from_start, from_end);
}

DType spacing_dtype(DType dtype) { return is_integral(dtype) ? DType::kF64 : wide(dtype); }

Values lower_linspace(LoweringContext& ctx) {
  const DType dtype = ctx.output().dtype;
  return {cast(ctx.b, linear_spaced(ctx, dtype, spacing_dtype(dtype)), dtype)};
}

Values lower_logspace(LoweringContext& ctx) {
  const DType dtype = ctx.output().dtype;
  const Expr exponents = linear_spaced(ctx, dtype, spacing_dtype(dtype));
  const Expr base(ctx.b, ctx.number("base", exponents.dtype(), 10.0));
  return {cast(ctx.b, power(base, exponents), dtype)};
}

// Row index minus column index of the last two dimensions of `dims`.
Expr row_minus_column(Builder& b, const Dims& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  const Dims matrix = {dims[dims.size() - 2], dims[dims.size() - 1]};
  const Expr rows(b, b.iota({DType::kS32, matrix}, 0));
  const Expr columns(b, b.iota({DType::kS32, matrix}, 1));
  const Expr difference = rows - columns;
  return rank == 2 ? difference : Expr(b, b.broadcast_to(difference, dims));
}

Values lower_eye(LoweringContext& ctx) {
  const TensorType& type = ctx.output();
  return {(row_minus_column(ctx.b, type.dims) == 0.0).convert(type.dtype)};
}

Values lower_triangle(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  // Far diagonals keep or drop everything; the limit keeps the constant within 32 bits.
  const auto diagonal = static_cast<double>(std::clamp<int64_t>(ctx.integer("diagonal", 0), -(1 << 30), 1 << 30));
  const Expr difference = row_minus_column(ctx.b, x.dims());
  const Expr keeps = ctx.name() == "aten::tril" ? difference >= -diagonal : difference <= -diagonal;
  return {select(keeps, x, 0.0)};
}

// [2, n]: row and column of each element of the lower or upper triangle, row by row.
Values lower_triangle_indices(LoweringContext& ctx) {
  constexpr int64_t kMaxListed = 1 << 16, kMaxVisited = 1 << 22;
  const TensorType& type = ctx.output();
  if (type.numel() == 0) return {ctx.b.splat(0, type)};
  if (type.numel() > kMaxListed) ctx.decline("more than ", kMaxListed, " indices");
  const int64_t num_rows = ctx.integer("row"), num_columns = ctx.integer("col");
  if (num_rows > kMaxVisited / num_columns) ctx.decline("more than ", kMaxVisited, " places to look at");
  const int64_t offset = ctx.integer("offset", 0);
  const bool lower = ctx.name() == "aten::tril_indices";
  std::vector<int64_t> rows;
  std::vector<int64_t> columns;
  for (int64_t i = 0; i < num_rows; ++i) {
    for (int64_t j = 0; j < num_columns; ++j) {
      if (lower ? j - i > offset : j - i < offset) continue;
      rows.push_back(i);
      columns.push_back(j);
    }
  }
  rows.insert(rows.end(), columns.begin(), columns.end());
  return {ctx.b.dense(rows, type)};
}

}  // namespace

const OpTable& factory_ops() {
  static const OpTable table = {
      {.name = "aten::fill", .lower = lower_fill, .unread = {"self"}},
      {.name = "aten::zero", .lower = lower_zero, .unread = {"self"}},
      {"aten::_efficientzerotensor", lower_zero},
      {"aten::full", lower_full},
      {"aten::scalar_tensor", lower_scalar_tensor},
      {"aten::arange", lower_arange, {"start", "end", "step"}},
      {"aten::range", lower_arange, {"start", "end", "step"}},
      {"aten::linspace", lower_linspace},
      {"aten::logspace", lower_logspace},
      {"aten::eye", lower_eye},
      {"aten::tril", lower_triangle},
      {"aten::triu", lower_triangle},
      {"aten::tril_indices", lower_triangle_indices},
      {"aten::triu_indices", lower_triangle_indices},
  };
  return table;
}

}  // namespace torch_pjrt
