// Softmax along one dimension, computed in float32 for the half types.
#include <cmath>

#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

// A reduction along `dim`, broadcast back to the dims of `x`.
Value reduce_along(Builder& b, Reduction reduction, Value x, int64_t dim) {
  Dims kept;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != dim) kept.push_back(i);
  }
  return b.broadcast_in_dim(b.reduce(reduction, x, {dim}), x.dims(), kept);
}

// A tensor without dimensions is a row of one element.
Value at_least_1d(Builder& b, Value x) { return x.rank() == 0 ? b.reshape(x, {1}) : x; }

// The argument `name` as a tensor to normalise: at least one dimension, in the dtype sums are kept in.
Value operand_1d(LoweringContext& ctx, std::string_view name, DType dtype) {
  return at_least_1d(ctx.b, ctx.operand(name, accumulate_dtype(dtype)));
}

int64_t dimension(LoweringContext& ctx, Value x) {
  const int64_t dim = ctx.integer("dim");
  return dim < 0 ? dim + x.rank() : dim;
}

// Back from `operand_1d` to the argument's dims and to `dtype`.
Values result(LoweringContext& ctx, Value x, Value argument, DType dtype) {
  return {ctx.b.convert(ctx.b.reshape(x, argument.dims()), dtype)};
}

Value softmax(Builder& b, Value x, int64_t dim) {
  const Value exp = b.exp(b.subtract(x, reduce_along(b, Reduction::kMax, x, dim)));
  return b.divide(exp, reduce_along(b, Reduction::kAdd, exp, dim));
}

Value log_softmax(Builder& b, Value x, int64_t dim) {
  const Value shifted = b.subtract(x, reduce_along(b, Reduction::kMax, x, dim));
  return b.subtract(shifted, b.log(reduce_along(b, Reduction::kAdd, b.exp(shifted), dim)));
}

Values lower_normalized(LoweringContext& ctx, Value (*function)(Builder&, Value, int64_t)) {
  const Value self = ctx.tensor("self");
  const Value x = operand_1d(ctx, "self", self.dtype());
  const DType dtype = ctx.flag("half_to_float") ? DType::kF32 : self.dtype();
  if (x.numel() == 0) return result(ctx, x, self, dtype);
  return result(ctx, function(ctx.b, x, dimension(ctx, x)), self, dtype);
}

Values lower_softmax(LoweringContext& ctx) { return lower_normalized(ctx, softmax); }
Values lower_log_softmax(LoweringContext& ctx) { return lower_normalized(ctx, log_softmax); }

// A row whose every element is -inf (all keys masked) gives zeros instead of NaNs.
Values lower_safe_softmax(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const DType dtype = ctx.dtype("dtype").value_or(self.dtype());
  const Value x = operand_1d(ctx, "self", dtype);
  if (x.numel() == 0) return result(ctx, x, self, dtype);
  const int64_t dim = dimension(ctx, x);
  const Value is_masked =
      b.compare(Comparison::kEq, reduce_along(b, Reduction::kMax, x, dim), b.splat_like(-INFINITY, x));
  return result(ctx, b.select(is_masked, b.splat_like(0.0, x), softmax(b, x, dim)), self, dtype);
}

Values lower_softmax_backward_data(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value argument = ctx.tensor("output");
  const Value grad = operand_1d(ctx, "grad_output", argument.dtype());
  const Value output = operand_1d(ctx, "output", argument.dtype());
  const DType dtype = ctx.dtype("input_dtype").value_or(argument.dtype());
  if (grad.numel() == 0) return result(ctx, grad, argument, dtype);
  const Value product = b.multiply(grad, output);
  const Value sum = reduce_along(b, Reduction::kAdd, product, dimension(ctx, output));
  return result(ctx, b.subtract(product, b.multiply(output, sum)), argument, dtype);
}

Values lower_log_softmax_backward_data(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value argument = ctx.tensor("output");
  const Value grad = operand_1d(ctx, "grad_output", argument.dtype());
  const Value output = operand_1d(ctx, "output", argument.dtype());
  const DType dtype = ctx.dtype("input_dtype").value_or(argument.dtype());
  if (grad.numel() == 0) return result(ctx, grad, argument, dtype);
  const Value sum = reduce_along(b, Reduction::kAdd, grad, dimension(ctx, output));
  return result(ctx, b.subtract(grad, b.multiply(b.exp(output), sum)), argument, dtype);
}

}  // namespace

const OpTable& softmax_ops() {
  static const OpTable table = {
      {.name = "aten::_softmax", .lower = lower_softmax},
      {.name = "aten::_log_softmax", .lower = lower_log_softmax},
      {.name = "aten::_safe_softmax", .lower = lower_safe_softmax},
      {.name = "aten::_softmax_backward_data", .lower = lower_softmax_backward_data},
      {.name = "aten::_log_softmax_backward_data", .lower = lower_log_softmax_backward_data},
  };
  return table;
}

}  // namespace torch_pjrt
