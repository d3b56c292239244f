// Elementwise losses and their backward. All compute in float32 for the half types and round once, at the end.
#include "ops/loss.h"

#include "ops/promotion.h"
#include "ops/registry.h"
#include "ops/value_check.h"

namespace torch_pjrt {

using stablehlo::Reduction;
using stablehlo::Values;

Expr sum_all(const Expr& x) { return ReductionDims(x.dims()).reduce(Reduction::kAdd, x); }

double count(const Dims& dims) { return static_cast<double>(product(dims)); }

Values reduce_loss(const LoweringContext& ctx, const Expr& loss, DType dtype) {
  const int64_t reduction = ctx.integer("reduction");
  if (reduction == kNone) return {loss.convert(dtype)};
  const Expr sum = sum_all(loss);
  return {(reduction == kMean ? sum / count(loss.dims()) : sum).convert(dtype)};
}

namespace {

// -----------------------------------------------------------------------------------------------

struct Pair {
  DType dtype;  // of the result
  Expr self, target;

  explicit Pair(LoweringContext& ctx)
      : dtype(ctx.result_type({"self", "target"})),
        self(ctx.b, ctx.operand("self", accumulate_dtype(dtype))),
        target(ctx.b, ctx.operand("target", accumulate_dtype(dtype))) {}

  Expr difference() const { return self - target; }
};

// grad_output, of which a mean gives every element of the argument self an equal share.
Expr element_grad(LoweringContext& ctx, DType dtype) {
  const Expr grad(ctx.b, ctx.operand("grad_output", dtype));
  return ctx.integer("reduction") == kMean ? grad / count(ctx.tensor("self").dims()) : grad;
}

Expr number(LoweringContext& ctx, std::string_view name, DType dtype) { return {ctx.b, ctx.number(name, dtype, 1.0)}; }

Expr multiply_by_weight(LoweringContext& ctx, const Expr& x) {
  return ctx.has("weight") ? x * Expr(ctx.b, ctx.operand("weight", x.dtype())) : x;
}

Values lower_mse_loss(LoweringContext& ctx) {
  const Pair x(ctx);
  const Expr difference = x.difference();
  return reduce_loss(ctx, difference * difference, x.dtype);
}

Values lower_mse_loss_backward(LoweringContext& ctx) {
  const Pair x(ctx);
  const Expr difference = x.difference();
  return {(2.0 * difference * element_grad(ctx, difference.dtype())).convert(x.dtype)};
}

Values lower_smooth_l1_loss(LoweringContext& ctx) {
  const Pair x(ctx);
  const Expr distance = abs(x.difference());
  const Expr beta = number(ctx, "beta", distance.dtype());
  const Expr quadratic = 0.5 * distance * distance / beta;
  return reduce_loss(ctx, select(distance < beta, quadratic, distance - 0.5 * beta), x.dtype);
}

Values lower_smooth_l1_loss_backward(LoweringContext& ctx) {
  const Pair x(ctx);
  const Expr difference = x.difference();
  const Expr beta = number(ctx, "beta", difference.dtype());
  const Expr grad = element_grad(ctx, difference.dtype());
  const Expr upper = select(difference >= beta, grad, difference * grad / beta);
  return {select(difference <= -beta, -grad, upper).convert(x.dtype)};
}

Values lower_huber_loss(LoweringContext& ctx) {
  const Pair x(ctx);
  const Expr distance = abs(x.difference());
  const Expr delta = number(ctx, "delta", distance.dtype());
  const Expr linear = delta * (distance - 0.5 * delta);
  return reduce_loss(ctx, select(distance <= delta, 0.5 * distance * distance, linear), x.dtype);
}

Values lower_huber_loss_backward(LoweringContext& ctx) {
  const Pair x(ctx);
  const Expr difference = x.difference();
  const Expr delta = number(ctx, "delta", difference.dtype());
  const Expr slope = maximum(-delta, minimum(difference, delta));
  return {(slope * element_grad(ctx, difference.dtype())).convert(x.dtype)};
}

Values lower_soft_margin_loss(LoweringContext& ctx) {
  const Pair x(ctx);
  return reduce_loss(ctx, log1p(exp(-x.target * x.self)), x.dtype);
}

Values lower_soft_margin_loss_backward(LoweringContext& ctx) {
  const Pair x(ctx);
  const Expr growth = exp(-x.target * x.self);
  const Expr slope = -x.target * growth / (growth + 1.0);
  return {(slope * element_grad(ctx, slope.dtype())).convert(x.dtype)};
}

// Logarithms are bounded at -100, so that a certain and wrong answer costs a finite loss.
Values lower_binary_cross_entropy(LoweringContext& ctx) {
  const Pair x(ctx);
  const auto check = [&](const Expr& values, std::string_view name) {
    require(ctx.b, ((values >= 0.0) & (values <= 1.0)).value(),
            concat("all elements of ", name, " should be between 0 and 1"));
  };
  check(x.self, "input");
  check(x.target, "target");
  const Expr loss = (x.target - 1.0) * maximum(log1p(-x.self), -100.0) - x.target * maximum(log(x.self), -100.0);
  return reduce_loss(ctx, multiply_by_weight(ctx, loss), x.dtype);
}

Values lower_binary_cross_entropy_backward(LoweringContext& ctx) {
  const Pair x(ctx);
  const Expr slope = x.difference() / maximum((1.0 - x.self) * x.self, 1e-12);
  return {multiply_by_weight(ctx, slope * element_grad(ctx, slope.dtype())).convert(x.dtype)};
}

Values lower_binary_cross_entropy_with_logits(LoweringContext& ctx) {
  const Pair x(ctx);
  Expr log_sigmoid = minimum(x.self, 0.0) - log1p(exp(-abs(x.self)));
  if (ctx.has("pos_weight")) {
    const Expr pos_weight(ctx.b, ctx.operand("pos_weight", x.self.dtype()));
    log_sigmoid = ((pos_weight - 1.0) * x.target + 1.0) * log_sigmoid;
  }
  return reduce_loss(ctx, multiply_by_weight(ctx, (1.0 - x.target) * x.self - log_sigmoid), x.dtype);
}

}  // namespace

const OpTable& loss_ops() {
  static const OpTable table = {
      {.name = "aten::mse_loss", .lower = lower_mse_loss},
      {.name = "aten::mse_loss_backward", .lower = lower_mse_loss_backward},
      {.name = "aten::smooth_l1_loss", .lower = lower_smooth_l1_loss},
      {.name = "aten::smooth_l1_loss_backward", .lower = lower_smooth_l1_loss_backward},
      {.name = "aten::huber_loss", .lower = lower_huber_loss},
      {.name = "aten::huber_loss_backward", .lower = lower_huber_loss_backward},
      {.name = "aten::soft_margin_loss", .lower = lower_soft_margin_loss},
      {.name = "aten::soft_margin_loss_backward", .lower = lower_soft_margin_loss_backward},
      {.name = "aten::binary_cross_entropy", .lower = lower_binary_cross_entropy},
      {.name = "aten::binary_cross_entropy_backward", .lower = lower_binary_cross_entropy_backward},
      {.name = "aten::binary_cross_entropy_with_logits", .lower = lower_binary_cross_entropy_with_logits},
  };
  return table;
}

}  // namespace torch_pjrt
