// Losses over class scores and their backward: self [N, C, *], [C] or [], target [N, *] or [] of class numbers.
#include "ops/indexing.h"
#include "ops/loss.h"
#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

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
  check_range(ctx.b, classes.target(), 0, static_cast<int64_t>(classes.size()),
              {ErrorCode::kIndexError, "Target ", " is out of bounds."}, ctx.integer("ignore_index"));
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

// Else 0, also where x is NaN.
Expr where_positive(const Expr& x) { return select(x > 0.0, x, 0.0); }

// margin - self[target] + self[j] for every class j but the target's, where that is positive, else 0.
Expr margin_excess(LoweringContext& ctx, const Classes& classes) {
  const Expr margin(ctx.b, ctx.number("margin", classes.scores().dtype(), 1.0));
  return select(classes.one_hot(), 0.0, where_positive(margin - classes.target_scores() + classes.scores()));
}

Values lower_multi_margin_loss(LoweringContext& ctx) {
  const Classes classes(ctx);
  check_range(ctx.b, classes.target(), 0, static_cast<int64_t>(classes.size()),
              {ErrorCode::kInvalidArgument, "target out of range", std::nullopt});
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

// --- multilabel margin: target [N, C] lists classes, up to the first negative number
// ----------------------------------

// All that the loss and its gradient need, with the dimensions sample, position in the list, class.
struct Labels {
  Expr scores;    // [N, 1, C]
  Expr one_hot;   // [N, C, C]: the class listed at a position
  Expr is_label;  // [N, 1, C]
  Expr excess;    // [N, C, C]: 1 - the listed class's score + the other's, where the list goes on; for labels 0

  explicit Labels(LoweringContext& ctx)
      : scores(samples(ctx, "self", accumulate_dtype(ctx.tensor("self").dtype()), 1)),
        one_hot(listed(ctx)),
        is_label(any(one_hot, 1)),
        excess(margins()) {}

  static Expr samples(LoweringContext& ctx, std::string_view name, DType dtype, int64_t new_dim) {
    const Value x = ctx.operand(name, dtype);
    const int64_t size = x.rank() == 0 ? 1 : x.dims().back();
    return {ctx.b, ctx.b.unsqueeze(ctx.b.reshape(x, {x.rank() < 2 ? 1 : x.dim(0), size}), new_dim)};
  }
  Expr sum(const Expr& x, int64_t dim) const {
    const ReductionDims dims(x.dims(), Dims{dim});
    return dims.keep(dims.reduce(Reduction::kAdd, x));
  }

 private:
  static Expr listed(LoweringContext& ctx) {
    const Expr target = samples(ctx, "target", DType::kS64, 2);
    const Expr smallest(ctx.b, scan(ctx.b, Reduction::kMin, target, 1));
    Dims dims = target.dims();
    dims[2] = dims[1];
    return (Expr(ctx.b, ctx.b.iota({DType::kS64, dims}, 2)) == target) & (smallest >= 0.0);
  }
  static Expr any(const Expr& x, int64_t dim) {
    const ReductionDims dims(x.dims(), Dims{dim});
    return dims.keep(dims.reduce(Reduction::kOr, x));
  }
  Expr margins() const {
    const Expr own = sum(select(one_hot, scores, 0.0), 2);
    return select(any(one_hot, 2) & ~is_label, where_positive(1.0 - own + scores), 0.0);
  }
};

// (loss, is_target)
Values lower_multilabel_margin_loss(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const Labels labels(ctx);
  check_range(b, ctx.tensor("target"), -1, labels.scores.dims().back(),
              {ErrorCode::kInvalidArgument, "argument #2 'target' is out of range", std::nullopt});
  const auto classes = static_cast<double>(labels.scores.dims().back());
  const Expr loss = labels.sum(labels.sum(labels.excess, 2), 1) / classes;
  const Dims dims = self.rank() < 2 ? Dims{} : Dims{self.dim(0)};
  const Values reduced = reduce_loss(ctx, {b, b.reshape(loss, dims)}, self.dtype());
  return {reduced[0], b.reshape(labels.is_label.convert(self.dtype()), ctx.tensor("target").dims())};
}

Values lower_multilabel_margin_loss_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const Labels labels(ctx);
  const Dims& dims = labels.excess.dims();
  double share = 1.0 / static_cast<double>(dims[2]);
  if (ctx.integer("reduction") == kMean) share /= static_cast<double>(dims[0]);
  const Value grad_output = ctx.operand("grad_output", labels.scores.dtype());
  const Expr grad(b, b.reshape(grad_output, {grad_output.numel(), 1, 1}));
  const Expr slope = select(labels.excess > 0.0, labels.excess.like(share), 0.0);
  const Expr own = select(labels.one_hot, labels.sum(slope, 2), 0.0);
  const Expr sum = grad * labels.sum(slope - own, 1);
  return {b.reshape(sum.convert(self.dtype()), self.dims())};
}

}  // namespace

const OpTable& class_loss_ops() {
  static const OpTable table = {
      {.name = "aten::nll_loss_forward", .lower = lower_nll_loss},
      {.name = "aten::nll_loss_backward", .lower = lower_nll_loss_backward},
      {.name = "aten::nll_loss2d_forward", .lower = lower_nll_loss},
      {.name = "aten::nll_loss2d_backward", .lower = lower_nll_loss_backward},
      {.name = "aten::multi_margin_loss", .lower = lower_multi_margin_loss, .static_args = {"p"}},
      {.name = "aten::multi_margin_loss_backward", .lower = lower_multi_margin_loss_backward, .static_args = {"p"}},
      {.name = "aten::multilabel_margin_loss_forward", .lower = lower_multilabel_margin_loss},
      {.name = "aten::multilabel_margin_loss_backward", .lower = lower_multilabel_margin_loss_backward},
  };
  return table;
}

}  // namespace torch_pjrt
