// Softmax along one dimension, computed in float32 for the half types.
#include <cmath>

#include "ops/promotion.h"
#include "ops/reduction.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Reduction;
using stablehlo::Values;

// A reduction that broadcasts back against x.
Expr along(const ReductionDims& dims, Reduction reduction, const Expr& x) {
  return dims.keep(dims.reduce(reduction, x));
}

Expr softmax(const Expr& x, const ReductionDims& dims) {
  const Expr weights = exp(x - along(dims, Reduction::kMax, x));
  return weights / along(dims, Reduction::kAdd, weights);
}

Expr log_softmax(const Expr& x, const ReductionDims& dims) {
  const Expr shifted = x - along(dims, Reduction::kMax, x);
  return shifted - log(along(dims, Reduction::kAdd, exp(shifted)));
}

// A row whose every element is -inf (all keys masked) gives zeros instead of NaNs.
Expr safe_softmax(const Expr& x, const ReductionDims& dims) {
  const Expr is_masked = along(dims, Reduction::kMax, x) == -INFINITY;
  return select(is_masked, x.like(0.0), softmax(x, dims));
}

Values lower_forward(LoweringContext& ctx, Expr (*function)(const Expr&, const ReductionDims&)) {
  const DType own = ctx.tensor("self").dtype();
  const DType dtype = ctx.flag("half_to_float") ? DType::kF32 : ctx.dtype("dtype").value_or(own);
  const Expr x(ctx.b, ctx.operand("self", accumulate_dtype(dtype)));
  return {function(x, ReductionDims(ctx, x.dims())).convert(dtype)};
}

Values lower_softmax(LoweringContext& ctx) { return lower_forward(ctx, softmax); }
Values lower_log_softmax(LoweringContext& ctx) { return lower_forward(ctx, log_softmax); }
Values lower_safe_softmax(LoweringContext& ctx) { return lower_forward(ctx, safe_softmax); }

struct BackwardArguments {
  Expr grad, output;
  ReductionDims dims;
  DType dtype;

  explicit BackwardArguments(LoweringContext& ctx)
      : grad(ctx.b, ctx.operand("grad_output", accumulate_dtype(ctx.tensor("output").dtype()))),
        output(ctx.b, ctx.operand("output", grad.dtype())),
        dims(ctx, output.dims()),
        dtype(ctx.dtype("input_dtype").value_or(ctx.tensor("output").dtype())) {}
};

Values lower_softmax_backward(LoweringContext& ctx) {
  const BackwardArguments args(ctx);
  const Expr product = args.grad * args.output;
  return {(product - args.output * along(args.dims, Reduction::kAdd, product)).convert(args.dtype)};
}

Values lower_log_softmax_backward(LoweringContext& ctx) {
  const BackwardArguments args(ctx);
  const Expr total = along(args.dims, Reduction::kAdd, args.grad);
  return {(args.grad - exp(args.output) * total).convert(args.dtype)};
}

}  // namespace

const OpTable& softmax_ops() {
  static const OpTable table = {
      {.name = "aten::_softmax", .lower = lower_softmax},
      {.name = "aten::_log_softmax", .lower = lower_log_softmax},
      {.name = "aten::_safe_softmax", .lower = lower_safe_softmax},
      {.name = "aten::_softmax_backward_data", .lower = lower_softmax_backward},
      {.name = "aten::_log_softmax_backward_data", .lower = lower_log_softmax_backward},
  };
  return table;
}

}  // namespace torch_pjrt
