// Loss functions and their backward. All compute in float32 for the half types and round once, at the end.
#include <tuple>

#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

// at::Reduction::Reduction
enum LossReduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

Value sum_all(Builder& b, Value x) {
  Dims dims(x.dims().size());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  return b.reduce(Reduction::kAdd, x, dims);
}

Value count(Builder& b, Value x) { return b.constant(x.numel(), x.dtype()); }

// The loss of each element, reduced as the argument `reduction` says and converted to `dtype`.
Values reduce_loss(LoweringContext& ctx, Value loss, DType dtype) {
  Builder& b = ctx.b;
  const int64_t reduction = ctx.integer("reduction");
  if (reduction == kNone) return {b.convert(loss, dtype)};
  const Value sum = sum_all(b, loss);
  return {b.convert(reduction == kSum ? sum : b.divide(sum, count(b, loss)), dtype)};
}

// Arguments of an elementwise loss, promoted and broadcast together.
struct Pair {
  Value self, target, zero, one;
  DType dtype;  // of the result

  explicit Pair(LoweringContext& ctx) : dtype(ctx.result_type({"self", "target"})) {
    const DType accumulate = accumulate_dtype(dtype);
    std::tie(self, target) = ctx.b.broadcast_pair(ctx.operand("self", accumulate), ctx.operand("target", accumulate));
    zero = ctx.b.splat_like(0.0, self);
    one = ctx.b.splat_like(1.0, self);
  }
};

// grad_output for each element of `like`; a mean shares it among the elements of the argument self.
Value element_grad(LoweringContext& ctx, Value like) {
  Builder& b = ctx.b;
  Value grad = ctx.operand("grad_output", like.dtype());
  if (ctx.integer("reduction") == kMean) {
    const Value elements = b.constant(ctx.tensor("self").numel(), like.dtype());
    grad = b.divide(grad, b.broadcast_to(elements, grad.dims()));
  }
  return b.broadcast_to(grad, like.dims());
}

// A number argument with the dims of `like`.
Value number_like(LoweringContext& ctx, std::string_view name, Value like, double fallback) {
  return ctx.b.broadcast_to(ctx.number(name, like.dtype(), fallback), like.dims());
}

Value multiply_by_weight(LoweringContext& ctx, Value x) {
  if (!ctx.has("weight")) return x;
  return ctx.b.multiply(x, ctx.b.broadcast_to(ctx.operand("weight", x.dtype()), x.dims()));
}

Values lower_mse_loss(LoweringContext& ctx) {
  const Pair x(ctx);
  const Value difference = ctx.b.subtract(x.self, x.target);
  return reduce_loss(ctx, ctx.b.multiply(difference, difference), x.dtype);
}

Values lower_mse_loss_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Pair x(ctx);
  const Value twice = b.multiply(b.splat_like(2.0, x.self), b.subtract(x.self, x.target));
  return {b.convert(b.multiply(twice, element_grad(ctx, x.self)), x.dtype)};
}

// 0.5 d^2 / beta where |d| < beta, else |d| - 0.5 beta.
Values lower_smooth_l1_loss(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Pair x(ctx);
  const Value distance = b.abs(b.subtract(x.self, x.target));
  const Value beta = number_like(ctx, "beta", distance, 1.0);
  const Value half = b.splat_like(0.5, distance);
  const Value quadratic = b.divide(b.multiply(half, b.multiply(distance, distance)), beta);
  const Value linear = b.subtract(distance, b.multiply(half, beta));
  return reduce_loss(ctx, b.select(b.compare(Comparison::kLt, distance, beta), quadratic, linear), x.dtype);
}

Values lower_smooth_l1_loss_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Pair x(ctx);
  const Value difference = b.subtract(x.self, x.target);
  const Value beta = number_like(ctx, "beta", difference, 1.0);
  const Value grad = element_grad(ctx, difference);
  const Value inner = b.divide(b.multiply(difference, grad), beta);
  const Value upper = b.select(b.compare(Comparison::kGe, difference, beta), grad, inner);
  const Value is_lower = b.compare(Comparison::kLe, difference, b.negate(beta));
  return {b.convert(b.select(is_lower, b.negate(grad), upper), x.dtype)};
}

// 0.5 d^2 where |d| <= delta, else delta (|d| - 0.5 delta).
Values lower_huber_loss(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Pair x(ctx);
  const Value distance = b.abs(b.subtract(x.self, x.target));
  const Value delta = number_like(ctx, "delta", distance, 1.0);
  const Value half = b.splat_like(0.5, distance);
  const Value quadratic = b.multiply(half, b.multiply(distance, distance));
  const Value linear = b.multiply(delta, b.subtract(distance, b.multiply(half, delta)));
  return reduce_loss(ctx, b.select(b.compare(Comparison::kLe, distance, delta), quadratic, linear), x.dtype);
}

Values lower_huber_loss_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Pair x(ctx);
  const Value difference = b.subtract(x.self, x.target);
  const Value delta = number_like(ctx, "delta", difference, 1.0);
  const Value clamped = b.clamp(b.negate(delta), difference, delta);
  return {b.convert(b.multiply(clamped, element_grad(ctx, difference)), x.dtype)};
}

// log(1 + exp(-target * self))
Values lower_soft_margin_loss(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Pair x(ctx);
  const Value exponent = b.negate(b.multiply(x.target, x.self));
  return reduce_loss(ctx, b.log1p(b.exp(exponent)), x.dtype);
}

Values lower_soft_margin_loss_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Pair x(ctx);
  const Value exp = b.exp(b.negate(b.multiply(x.target, x.self)));
  const Value slope = b.divide(b.multiply(x.target, exp), b.add(x.one, exp));
  return {b.convert(b.negate(b.multiply(slope, element_grad(ctx, x.self))), x.dtype)};
}

// Logarithms are bounded at -100, so that a certain and wrong answer costs a finite loss.
Values lower_binary_cross_entropy(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Pair x(ctx);
  const Value bound = b.splat_like(-100.0, x.self);
  const Value log = b.maximum(b.log(x.self), bound);
  const Value log_rest = b.maximum(b.log1p(b.negate(x.self)), bound);
  const Value loss = b.subtract(b.multiply(b.subtract(x.target, x.one), log_rest), b.multiply(x.target, log));
  return reduce_loss(ctx, multiply_by_weight(ctx, loss), x.dtype);
}

Values lower_binary_cross_entropy_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Pair x(ctx);
  const Value spread = b.multiply(b.subtract(x.one, x.self), x.self);
  const Value slope = b.divide(b.subtract(x.self, x.target), b.maximum(spread, b.splat_like(1e-12, spread)));
  const Value grad = b.multiply(slope, element_grad(ctx, x.self));
  return {b.convert(multiply_by_weight(ctx, grad), x.dtype)};
}

// (1 - target) * self - (1 + (pos_weight - 1) target) * log_sigmoid(self)
Values lower_binary_cross_entropy_with_logits(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Pair x(ctx);
  const Value log1p = b.log1p(b.exp(b.negate(b.abs(x.self))));
  Value log_sigmoid = b.subtract(b.minimum(x.self, x.zero), log1p);
  if (ctx.has("pos_weight")) {
    const Value pos_weight = b.broadcast_to(ctx.operand("pos_weight", x.self.dtype()), x.self.dims());
    const Value factor = b.add(b.multiply(b.subtract(pos_weight, x.one), x.target), x.one);
    log_sigmoid = b.multiply(factor, log_sigmoid);
  }
  const Value loss = b.subtract(b.multiply(b.subtract(x.one, x.target), x.self), log_sigmoid);
  return reduce_loss(ctx, multiply_by_weight(ctx, loss), x.dtype);
}

// --- losses over class scores: self [N, C, *] or [C], target [N, *] or [] of class numbers ---------------------------

// x with a dimension of `size` inserted at `dim`.
Value expand(Builder& b, Value x, int64_t dim, int64_t size) {
  Dims dims = x.dims();
  dims.insert(dims.begin() + dim, size);
  Dims positions;
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
    if (i != dim) positions.push_back(i);
  }
  return b.broadcast_in_dim(x, dims, positions);
}

// flat[indices] for a vector `flat`; the result has the dims of `indices`.
Value take(Builder& b, Value flat, Value indices) {
  stablehlo::GatherDims dims;
  dims.collapsed_slice_dims = {0};
  dims.start_index_map = {0};
  dims.index_vector_dim = indices.rank();
  return b.gather(flat, indices, dims, {1});
}

struct Classes {
  Value scores;       // self, in the dtype sums are kept in
  Value target;       // s64
  Value one_hot;      // pred, dims of self: the target's class
  int64_t dim, size;  // the class dimension

  explicit Classes(LoweringContext& ctx) {
    Builder& b = ctx.b;
    scores = ctx.operand("self", accumulate_dtype(ctx.tensor("self").dtype()));
    dim = scores.rank() == 1 ? 0 : 1;
    size = scores.dim(dim);
    target = ctx.operand("target", DType::kS64);
    Dims without_class = scores.dims();
    without_class.erase(without_class.begin() + dim);
    target = b.reshape(target, without_class);  // self [C] goes with target [] and [1]
    const TensorType type = scores.type().with_dtype(DType::kS64);
    one_hot = b.compare(Comparison::kEq, b.iota(type, dim), expand(b, target, dim, size));
  }
};

// The score of each target's class.
Value target_scores(Builder& b, const Classes& classes) {
  const TensorType type = classes.target.type();
  const int64_t inner = product(Dims(classes.scores.dims().begin() + classes.dim + 1, classes.scores.dims().end()));
  // Position of class 0 in the flat scores, then as many steps of `inner` as the class says.
  const Value position = b.reshape(b.iota({DType::kS64, {type.numel()}}, 0), type.dims);
  const Value outer = b.divide(position, b.splat(inner, type));
  const Value base = b.add(position, b.multiply(outer, b.splat((classes.size - 1) * inner, type)));
  const Value index = b.add(base, b.multiply(classes.target, b.splat(inner, type)));
  return take(b, b.reshape(classes.scores, {classes.scores.numel()}), index);
}

// Weight of each target, 0 for those to ignore.
Value target_weights(LoweringContext& ctx, const Classes& classes) {
  Builder& b = ctx.b;
  const TensorType type{classes.scores.dtype(), classes.target.dims()};
  const Value weight =
      ctx.has("weight") ? take(b, ctx.operand("weight", type.dtype), classes.target) : b.splat(1.0, type);
  const Value ignored = b.splat(ctx.integer("ignore_index"), classes.target.type());
  return b.select(b.compare(Comparison::kEq, classes.target, ignored), b.splat(0.0, type), weight);
}

Values lower_nll_loss(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const DType dtype = ctx.tensor("self").dtype();
  const Classes classes(ctx);
  const Value weights = target_weights(ctx, classes);
  const Value ignored = b.splat(ctx.integer("ignore_index"), classes.target.type());
  // A select, so that an ignored position adds nothing even where its score is infinite or NaN.
  const Value loss = b.select(b.compare(Comparison::kEq, classes.target, ignored), b.splat_like(0.0, weights),
                              b.negate(b.multiply(target_scores(b, classes), weights)));
  const int64_t reduction = ctx.integer("reduction");
  if (reduction == kNone) return {b.convert(loss, dtype), b.constant(0.0, dtype)};
  const Value total_weight = sum_all(b, weights);
  const Value sum = sum_all(b, loss);
  return {b.convert(reduction == kSum ? sum : b.divide(sum, total_weight), dtype), b.convert(total_weight, dtype)};
}

Values lower_nll_loss_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Classes classes(ctx);
  const Value weights = target_weights(ctx, classes);
  Value grad = b.broadcast_to(ctx.operand("grad_output", weights.dtype()), weights.dims());
  if (ctx.integer("reduction") == kMean) {
    const Value total_weight = b.reshape(ctx.operand("total_weight", weights.dtype()), {});
    grad = b.divide(grad, b.broadcast_to(total_weight, grad.dims()));
  }
  const Value ignored = b.splat(ctx.integer("ignore_index"), classes.target.type());
  const Value is_used = b.compare(Comparison::kNe, classes.target, ignored);
  const Value at_target = expand(b, b.negate(b.multiply(grad, weights)), classes.dim, classes.size);
  const Value mask = b.logical_and(classes.one_hot, expand(b, is_used, classes.dim, classes.size));
  return {b.convert(b.select(mask, at_target, b.splat_like(0.0, at_target)), ctx.tensor("self").dtype())};
}

// margin - self[target] + self[j] for every class j but the target's, where that is positive, else 0.
Value margin_excess(LoweringContext& ctx, const Classes& classes) {
  Builder& b = ctx.b;
  const Value score = expand(b, target_scores(b, classes), classes.dim, classes.size);
  const Value margin = number_like(ctx, "margin", score, 1.0);
  const Value zero = b.splat_like(0.0, score);
  const Value excess = b.maximum(b.add(b.subtract(margin, score), classes.scores), zero);
  return b.select(classes.one_hot, zero, excess);
}

// 1 / C, times the weight of the target's class.
Value margin_factor(LoweringContext& ctx, const Classes& classes) {
  Builder& b = ctx.b;
  const TensorType type{classes.scores.dtype(), classes.target.dims()};
  const Value share = b.splat(1.0 / static_cast<double>(classes.size), type);
  return ctx.has("weight") ? b.multiply(share, take(b, ctx.operand("weight", type.dtype), classes.target)) : share;
}

Values lower_multi_margin_loss(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Classes classes(ctx);
  Value excess = margin_excess(ctx, classes);
  if (ctx.real("p") == 2.0) excess = b.multiply(excess, excess);
  const Value sum = b.reduce(Reduction::kAdd, excess, {classes.dim});
  return reduce_loss(ctx, b.multiply(sum, margin_factor(ctx, classes)), ctx.tensor("self").dtype());
}

Values lower_multi_margin_loss_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Classes classes(ctx);
  const Value excess = margin_excess(ctx, classes);
  const Value zero = b.splat_like(0.0, excess);
  const Value factor = margin_factor(ctx, classes);
  Value grad = b.broadcast_to(ctx.operand("grad_output", factor.dtype()), factor.dims());
  if (ctx.integer("reduction") == kMean) grad = b.divide(grad, b.broadcast_to(count(b, grad), grad.dims()));
  const Value slope = ctx.real("p") == 2.0 ? b.multiply(b.splat_like(2.0, excess), excess) : b.splat_like(1.0, excess);
  const Value scaled = b.multiply(slope, expand(b, b.multiply(grad, factor), classes.dim, classes.size));
  const Value others = b.select(b.compare(Comparison::kGt, excess, zero), scaled, zero);
  const Value own = expand(b, b.negate(b.reduce(Reduction::kAdd, others, {classes.dim})), classes.dim, classes.size);
  return {b.convert(b.select(classes.one_hot, own, others), ctx.tensor("self").dtype())};
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
