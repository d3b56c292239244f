// Reductions. Sums of the 16-bit floats accumulate in float32.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/cast.h"
#include "ops/elementwise.h"
#include "ops/indexing.h"
#include "ops/reduction.h"

namespace torch_pjrt {

using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

namespace {

Dims all_of(const Dims& dims) {
  Dims all(dims.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

Dims named_dims(const LoweringContext& ctx, const Dims& dims, bool empty_is_none) {
  if (!ctx.has("dim") || (empty_is_none && ctx.ints("dim").empty())) return all_of(dims);
  if (dims.empty()) return {};  // dim 0 and -1 of a scalar name nothing
  Dims named;
  for (const int64_t dim : ctx.ints("dim")) named.push_back(wrap_dim(dim, static_cast<int64_t>(dims.size())));
  std::sort(named.begin(), named.end());
  return named;
}

}  // namespace

ReductionDims::ReductionDims(const Dims& dims, Dims reduced, bool keepdim)
    : reduced_(std::move(reduced)), kept_shape_(dims), keepdim_(keepdim) {
  for (const int64_t dim : reduced_) {
    count_ *= dims[static_cast<size_t>(dim)];
    kept_shape_[static_cast<size_t>(dim)] = 1;
  }
}

ReductionDims::ReductionDims(const Dims& dims, Dims reduced) : ReductionDims(dims, std::move(reduced), false) {}

ReductionDims::ReductionDims(const Dims& dims) : ReductionDims(dims, all_of(dims), false) {}

ReductionDims::ReductionDims(const LoweringContext& ctx, const Dims& dims, bool empty_is_none)
    : ReductionDims(dims, named_dims(ctx, dims, empty_is_none), ctx.flag("keepdim")) {}

Expr ReductionDims::keep(const Expr& result) const {
  return {result.builder(), result.builder().reshape(result, kept_shape_)};
}

Expr ReductionDims::shape(const Expr& result) const { return keepdim_ ? keep(result) : result; }

Expr ReductionDims::reduce(Reduction reduction, const Expr& x) const {
  return {x.builder(), x.builder().reduce(reduction, x, reduced_)};
}

Expr sum_of_powers(const Expr& magnitude, double ord, const ReductionDims& dims) {
  if (ord == 0.0) return dims.reduce(Reduction::kAdd, (magnitude != 0.0).convert(magnitude.dtype()));
  if (ord == 1.0) return dims.reduce(Reduction::kAdd, magnitude);
  return dims.reduce(Reduction::kAdd, power_static(magnitude, ord, magnitude.dtype()));
}

Expr vector_norm(const Expr& x, double ord, const ReductionDims& dims) {
  if (ord == 2.0 && is_complex(x.dtype())) {
    return sqrt(dims.reduce(Reduction::kAdd, real(x) * real(x) + imag(x) * imag(x)));
  }
  const Expr magnitude = abs(x);
  if (ord == std::numeric_limits<double>::infinity()) return dims.reduce(Reduction::kMax, magnitude);
  if (ord == -std::numeric_limits<double>::infinity()) return dims.reduce(Reduction::kMin, magnitude);
  const Expr sum = sum_of_powers(magnitude, ord, dims);
  if (ord == 0.0 || ord == 1.0) return sum;
  return ord == 2.0 ? sqrt(sum) : power(sum, sum.like(1.0 / ord));
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The dtype of a sum or product: `dtype`, else the output's, else int64 for integers.
DType accumulated_dtype(const LoweringContext& ctx, DType input) {
  if (const auto dtype = ctx.dtype("dtype")) return *dtype;
  if (ctx.has_outputs()) return ctx.output().dtype;
  return is_floating(input) || is_complex(input) ? input : DType::kS64;
}

// `self` in the dtype in which a sum of dtype `result` accumulates.
Expr accumulator_input(LoweringContext& ctx, DType result) {
  return {ctx.b, cast(ctx.b, ctx.tensor("self"), wide(result))};
}

Values lower_sum(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const DType result = accumulated_dtype(ctx, self.dtype());
  Expr x = accumulator_input(ctx, result);
  if (ctx.name() == "aten::nansum" && is_complex(self.dtype())) ctx.decline("complex input");
  if (ctx.name() == "aten::nansum" && is_floating(x.dtype())) x = select(is_nan(x), 0.0, x);
  const ReductionDims dims(ctx, self.dims());
  return {dims.shape(dims.reduce(Reduction::kAdd, x)).convert(result)};
}

Values lower_mean(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const DType result = accumulated_dtype(ctx, self.dtype());
  const ReductionDims dims(ctx, self.dims());
  const Expr sum = dims.reduce(Reduction::kAdd, accumulator_input(ctx, result));
  return {dims.shape(sum / static_cast<double>(dims.count())).convert(result)};
}

Values lower_prod(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const DType result = accumulated_dtype(ctx, self.dtype());
  const ReductionDims dims(ctx, self.dims());
  return {dims.shape(dims.reduce(Reduction::kMul, accumulator_input(ctx, result))).convert(result)};
}

Values lower_extremum(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  const ReductionDims dims(ctx, x.dims());
  return {dims.shape(dims.reduce(ctx.name() == "aten::amax" ? Reduction::kMax : Reduction::kMin, x))};
}

Values lower_aminmax(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  const ReductionDims dims(ctx, x.dims());
  return {dims.shape(dims.reduce(Reduction::kMin, x)), dims.shape(dims.reduce(Reduction::kMax, x))};
}

// Index, along the one reduced dimension, of the first element that equals the extremum; NaN counts as the extremum.
Expr first_index_of(const Expr& x, const Expr& extremum, const ReductionDims& dims) {
  stablehlo::Builder& b = x.builder();
  if (dims.reduced().empty()) return {b, b.splat(0, {DType::kS64, extremum.dims()})};
  const int64_t dim = dims.reduced()[0];
  const Expr at_extremum = x == dims.keep(extremum);
  const Expr found = is_floating(x.dtype()) ? at_extremum | is_nan(x) : at_extremum;
  const DType index_dtype = x.value().dim(dim) <= std::numeric_limits<int32_t>::max() ? DType::kS32 : DType::kS64;
  const Expr position(b, b.iota({index_dtype, x.dims()}, dim));
  const Expr candidates = select(found, position, static_cast<double>(x.value().dim(dim)));
  return dims.reduce(Reduction::kMin, candidates).convert(DType::kS64);
}

// max and min: of everything, or along a dimension with indices.
Values lower_max(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  const ReductionDims dims(ctx, x.dims());
  const Expr extremum = dims.reduce(ctx.name() == "aten::max" ? Reduction::kMax : Reduction::kMin, x);
  if (!ctx.has("dim")) return {extremum};
  return {dims.shape(extremum), dims.shape(first_index_of(x, extremum, dims))};
}

Values lower_argmax(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  const Reduction reduction = ctx.name() == "aten::argmax" ? Reduction::kMax : Reduction::kMin;
  if (ctx.has("dim")) {
    const ReductionDims dims(ctx, x.dims());
    return {dims.shape(first_index_of(x, dims.reduce(reduction, x), dims))};
  }
  const Expr flat(ctx.b, ctx.b.reshape(x, {x.value().numel()}));
  const ReductionDims all(flat.dims());
  const Expr index = first_index_of(flat, all.reduce(reduction, flat), all);
  const Dims ones(ctx.flag("keepdim") ? x.dims().size() : 0, 1);
  return {ctx.b.reshape(index, ones)};
}

Values lower_any_all(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  const Expr truth = x.convert(DType::kPred);
  const ReductionDims dims(ctx, x.dims(), /*empty_is_none=*/false);
  const Expr result = dims.shape(dims.reduce(ctx.name() == "aten::any" ? Reduction::kOr : Reduction::kAnd, truth));
  return {x.dtype() == DType::kU8 ? result.convert(DType::kU8) : result};
}

struct Moments {
  Expr mean;
  Expr variance;
};

// Two passes, in `x`'s dtype; the variance of complex numbers is real.
Moments moments(const Expr& x, const ReductionDims& dims, double correction) {
  const auto count = static_cast<double>(dims.count());
  const Expr mean = dims.reduce(Reduction::kAdd, x) / count;
  const Expr centered = x - dims.keep(mean);
  const Expr square =
      is_complex(x.dtype()) ? real(centered) * real(centered) + imag(centered) * imag(centered) : centered * centered;
  const double degrees = std::max(0.0, count - correction);
  return {mean, dims.reduce(Reduction::kAdd, square) / degrees};
}

// var, std, var_mean and std_mean.
Values lower_var(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  if (!is_floating(self.dtype()) && !is_complex(self.dtype())) ctx.decline("only floating and complex dtypes");
  const Expr x(ctx.b, ctx.b.convert(self, wide(self.dtype())));
  const ReductionDims dims(ctx, self.dims());
  const auto [mean, variance] = moments(x, dims, ctx.real("correction", 1.0));
  const bool is_std = ctx.name().starts_with("aten::std");
  const Expr spread = dims.shape(is_std ? sqrt(variance) : variance).convert(real_dtype(self.dtype()));
  if (!ctx.name().ends_with("_mean")) return {spread};
  return {spread, dims.shape(mean).convert(self.dtype())};
}

// norm(p), linalg_vector_norm(ord) and linalg__powsum(ord).
Values lower_norm(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const DType input = to_floating(ctx.dtype("dtype").value_or(self.dtype()), default_floating(ctx));
  const Expr x(ctx.b, cast(ctx.b, self, wide(input)));
  const double ord = ctx.name() == "aten::norm" ? ctx.real("p", 2.0) : ctx.real("ord", 2.0);
  const ReductionDims dims(ctx, self.dims());
  const Expr result =
      ctx.name() == "aten::linalg__powsum" ? sum_of_powers(abs(x), ord, dims) : vector_norm(x, ord, dims);
  return {dims.shape(result).convert(real_dtype(input))};
}

// The largest exponent is factored out; an infinite one is not, as inf - inf would be NaN.
Values lower_logsumexp(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const ElementwiseTypes types = elementwise_types(Rule::kFloating, self.dtype(), default_floating(ctx));
  const Expr x(ctx.b, ctx.b.convert(self, types.compute));
  const ReductionDims dims(ctx, self.dims());
  const Expr largest = dims.reduce(Reduction::kMax, real(x));
  const Expr shift = select(abs(largest) == kInfinity, 0.0, largest).convert(types.compute);
  const Expr sum = dims.reduce(Reduction::kAdd, exp(x - dims.keep(shift)));
  return {finish(dims.shape(log(sum) + shift), types)};
}

Values lower_count_nonzero(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  const ReductionDims dims(ctx, x.dims());
  return {dims.reduce(Reduction::kAdd, x.convert(DType::kPred).convert(DType::kS64))};
}

Values lower_trace(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const int64_t columns = self.dim(1);
  const int64_t length = std::min(self.dim(0), columns);
  const DType result = accumulated_dtype(ctx, self.dtype());
  if (length == 0) return {ctx.b.splat(0, {result, {}})};
  const Value flat = ctx.b.reshape(self, {self.numel()});
  const Value diagonal = ctx.b.slice_dim(flat, 0, 0, (length - 1) * (columns + 1) + 1, columns + 1);
  return {ctx.b.convert(ctx.b.reduce(Reduction::kAdd, cast(ctx.b, diagonal, wide(result)), {0}), result)};
}

}  // namespace

const OpTable& reduce_ops() {
  static const OpTable table = {
      {"aten::sum", lower_sum},
      {"aten::nansum", lower_sum},
      {"aten::mean", lower_mean},
      {"aten::prod", lower_prod},
      {"aten::amax", lower_extremum},
      {"aten::amin", lower_extremum},
      {"aten::aminmax", lower_aminmax},
      {"aten::_aminmax", lower_aminmax},
      {"aten::max", lower_max},
      {"aten::min", lower_max},
      {"aten::argmax", lower_argmax},
      {"aten::argmin", lower_argmax},
      {"aten::any", lower_any_all},
      {"aten::all", lower_any_all},
      {"aten::var", lower_var, {"correction"}},
      {"aten::std", lower_var, {"correction"}},
      {"aten::var_mean", lower_var, {"correction"}},
      {"aten::std_mean", lower_var, {"correction"}},
      {"aten::norm", lower_norm, {"p"}},
      {"aten::linalg_vector_norm", lower_norm, {"ord"}},
      {"aten::linalg__powsum", lower_norm, {"ord"}},
      {"aten::logsumexp", lower_logsumexp},
      {"aten::count_nonzero", lower_count_nonzero},
      {"aten::trace", lower_trace},
  };
  return table;
}

}  // namespace torch_pjrt
