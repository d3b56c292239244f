// Loss functions and their backward. All compute in float32 for the half types and round once, at the end.
#include "ops/indexing.h"
#include "ops/promotion.h"
#include "ops/reduction.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

// at::Reduction::Reduction
enum LossReduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

Expr sum_all(const Expr& x) { return ReductionDims(x.dims()).reduce(Reduction::kAdd, x); }

double count(const Dims& dims) { return static_cast<double>(product(dims)); }

// The loss of each element, reduced as the argument `reduction` says and converted to `dtype`.
Values reduce_loss(LoweringContext& ctx, const Expr& loss, DType dtype) {
  const int64_t reduction = ctx.integer("reduction");
  if (reduction == kNone) return {loss.convert(dtype)};
  const Expr sum = sum_all(loss);
  return {(reduction == kMean ? sum / count(loss.dims()) : sum).convert(dtype)};
}

// --- elementwise losses
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

// --- losses over class scores: self [N, C, *], [C] or [], target [N, *] or [] of class numbers
// ------------------------

Expr take(const Expr& flat, const Expr& indices) {
  return {flat.builder(), take_rows(flat.builder(), flat, 0, indices)};
}

// What each target has (its class, its weight, its loss) keeps the class dimension, as size 1.
class Classes {
 public:
  explicit Classes(LoweringContext& ctx)
      : ctx_(ctx),
        scores_(ctx.b, ctx.operand("self", accumulate_dtype(ctx.tensor("self").dtype()))),
        target_(ctx.b, ctx.operand("target", DType::kS64)) {
    if (scores_.dims().empty()) scores_ = {ctx.b, ctx.b.reshape(scores_, {1})};
    dim_ = scores_.dims().size() == 1 ? 0 : 1;
    Dims dims = scores_.dims();
    dims[static_cast<size_t>(dim_)] = 1;
    target_ = {ctx.b, ctx.b.reshape(target_, dims)};
  }

  const Expr& scores() const { return scores_; }
  const Expr& target() const { return target_; }
  double size() const { return static_cast<double>(scores_.value().dim(dim_)); }

  // pred, [N, C, *]: the target's class.
  Expr one_hot() const {
    return Expr(ctx_.b, ctx_.b.iota(scores_.value().type().with_dtype(DType::kS64), dim_)) == target_;
  }
  Expr is_used() const { return target_ != static_cast<double>(ctx_.integer("ignore_index")); }

  // The score of each target's class.
  Expr target_scores() const {
    const int64_t inner = product(Dims(scores_.dims().begin() + dim_ + 1, scores_.dims().end()));
    const TensorType type = target_.value().type();
    const Expr position(ctx_.b, ctx_.b.reshape(ctx_.b.iota({type.dtype, {type.numel()}}, 0), type.dims));
    // Position of class 0 in the flat scores, then as many steps of `inner` as the class says.
    const Expr outer = position / static_cast<double>(inner);
    const Expr first = position + outer * ((size() - 1.0) * static_cast<double>(inner));
    const Expr flat(ctx_.b, ctx_.b.reshape(scores_, {scores_.value().numel()}));
    return take(flat, first + target_ * static_cast<double>(inner));
  }

  // Weight of each target's class.
  Expr target_weights() const {
    if (ctx_.has("weight")) return take({ctx_.b, ctx_.operand("weight", scores_.dtype())}, target_);
    return target_.convert(scores_.dtype()).like(1.0);
  }

  Expr sum_over_classes(const Expr& x) const {
    const ReductionDims dims(x.dims(), Dims{dim_});
    return dims.keep(dims.reduce(Reduction::kAdd, x));
  }

  // Something of each target without the class dimension, reduced as the argument `reduction` says.
  Values reduce(const Expr& loss) const {
    return reduce_loss(ctx_, {ctx_.b, ctx_.b.squeeze(loss, dim_)}, ctx_.tensor("self").dtype());
  }
  // grad_output of each target; broadcasts against the scores.
  Expr grad() const {
    const Expr grad(ctx_.b, ctx_.operand("grad_output", scores_.dtype()));
    return grad.dims().empty() ? grad : Expr(ctx_.b, ctx_.b.unsqueeze(grad, dim_));
  }
  Values finish_backward(const Expr& x) const {
    const Value self = ctx_.tensor("self");
    return {ctx_.b.reshape(x.convert(self.dtype()), self.dims())};
  }

 private:
  LoweringContext& ctx_;
  Expr scores_, target_;
  int64_t dim_;
};

// (loss, total weight). Ignored positions are selected away: their scores may be infinite.
Values lower_nll_loss(LoweringContext& ctx) {
  const DType dtype = ctx.tensor("self").dtype();
  const Classes classes(ctx);
  const Expr weights = select(classes.is_used(), classes.target_weights(), 0.0);
  const Expr loss = select(classes.is_used(), -classes.target_scores() * weights, 0.0);
  const Expr total_weight = sum_all(weights);
  if (ctx.integer("reduction") == kNone) {
    // ATen leaves it at zero for a batch, where nothing asks for it.
    const bool is_batch = ctx.tensor("self").rank() > 1;
    return {classes.reduce(loss)[0], (is_batch ? total_weight.like(0.0) : total_weight).convert(dtype)};
  }
  const Expr sum = sum_all(loss);
  return {(ctx.integer("reduction") == kMean ? sum / total_weight : sum).convert(dtype), total_weight.convert(dtype)};
}

Values lower_nll_loss_backward(LoweringContext& ctx) {
  const Classes classes(ctx);
  Expr grad = classes.grad();
  if (ctx.integer("reduction") == kMean) {
    grad = grad / Expr(ctx.b, ctx.b.reshape(ctx.operand("total_weight", grad.dtype()), {}));
  }
  const Expr at_target = -grad * classes.target_weights();
  return classes.finish_backward(select(classes.one_hot() & classes.is_used(), at_target, 0.0));
}

// margin - self[target] + self[j] for every class j but the target's, where that is positive, else 0.
Expr margin_excess(LoweringContext& ctx, const Classes& classes) {
  const Expr margin = number(ctx, "margin", classes.scores().dtype());
  const Expr excess = maximum(margin - classes.target_scores() + classes.scores(), 0.0);
  return select(classes.one_hot(), 0.0, excess);
}

Values lower_multi_margin_loss(LoweringContext& ctx) {
  const Classes classes(ctx);
  const Expr excess = margin_excess(ctx, classes);
  const Expr sum = classes.sum_over_classes(ctx.real("p") == 2.0 ? excess * excess : excess);
  return classes.reduce(sum / classes.size() * classes.target_weights());
}

Values lower_multi_margin_loss_backward(LoweringContext& ctx) {
  const Classes classes(ctx);
  const Expr excess = margin_excess(ctx, classes);
  Expr share = classes.grad() / classes.size() * classes.target_weights();
  if (ctx.integer("reduction") == kMean) share = share / count(classes.target().dims());
  const Expr slope = ctx.real("p") == 2.0 ? 2.0 * excess : excess.like(1.0);
  const Expr others = select(excess > 0.0, slope * share, 0.0);
  return classes.finish_backward(select(classes.one_hot(), -classes.sum_over_classes(others), others));
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
      {.name = "aten::nll_loss_forward", .lower = lower_nll_loss},
      {.name = "aten::nll_loss_backward", .lower = lower_nll_loss_backward},
      {.name = "aten::nll_loss2d_forward", .lower = lower_nll_loss},
      {.name = "aten::nll_loss2d_backward", .lower = lower_nll_loss_backward},
      {.name = "aten::multi_margin_loss", .lower = lower_multi_margin_loss, .static_args = {"p"}},
      {.name = "aten::multi_margin_loss_backward", .lower = lower_multi_margin_loss_backward, .static_args = {"p"}},
  };
  return table;
}

}  // namespace torch_pjrt
