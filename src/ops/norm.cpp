// Batch, layer, group and weight normalisation with their backward, and renorm. Statistics are kept in float32 for the
// half types; an output in the caller's dtype is rounded once.
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

// The dimensions of a tensor split in two: those that a statistic is taken over, and those that number the statistics.
struct Split {
  Dims reduced, kept;
  int64_t count = 1;  // elements that one statistic is taken over

  Split(const Dims& dims, const std::function<bool(int64_t)>& is_reduced) {
    for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
      (is_reduced(i) ? reduced : kept).push_back(i);
      if (is_reduced(i)) count *= dims[static_cast<size_t>(i)];
    }
  }
};

Value sum(Builder& b, Value x, const Split& split) { return b.reduce(Reduction::kAdd, x, split.reduced); }

Value mean(Builder& b, Value x, const Split& split) {
  const Value total = sum(b, x, split);
  return b.divide(total, b.splat(split.count, total.type()));
}

// One statistic for each kept position, repeated over the reduced dimensions of `like`.
Value spread(Builder& b, Value statistic, Value like, const Split& split) {
  return b.broadcast_in_dim(statistic, like.dims(), split.kept);
}

// 1 / sqrt(variance + eps)
Value inverse_deviation(LoweringContext& ctx, Value variance) {
  Builder& b = ctx.b;
  return b.rsqrt(b.add(variance, b.splat(ctx.real("eps"), variance.type())));
}

struct Normalized {
  Value centered, mean, variance;  // x - mean, and the statistics (the variance is biased)

  // Two passes: the mean first, because E[x^2] - E[x]^2 loses all digits where the mean is large.
  Normalized(Builder& b, Value x, const Split& split) : mean(torch_pjrt::mean(b, x, split)) {
    centered = b.subtract(x, spread(b, mean, x, split));
    variance = torch_pjrt::mean(b, b.multiply(centered, centered), split);
  }
};

// Gradient of y = x_hat with respect to x, given the gradient of x_hat:
// inverse deviation * (grad - mean(grad) - x_hat * mean(grad * x_hat)).
Value normalize_backward(Builder& b, Value grad, Value x_hat, Value inverse, const Split& split) {
  const Value along = spread(b, mean(b, b.multiply(grad, x_hat), split), grad, split);
  const Value centered = b.subtract(grad, spread(b, mean(b, grad, split), grad, split));
  return b.multiply(spread(b, inverse, grad, split), b.subtract(centered, b.multiply(x_hat, along)));
}

// The parameter `name` laid along the dimensions `positions` of `like`.
std::optional<Value> parameter(LoweringContext& ctx, std::string_view name, Value like, const Dims& positions) {
  if (!ctx.has(name)) return std::nullopt;
  return ctx.b.broadcast_in_dim(ctx.operand(name, like.dtype()), like.dims(), positions);
}

DType dtype_of(LoweringContext& ctx, std::string_view name, DType fallback) {
  return ctx.has(name) ? ctx.tensor(name).dtype() : fallback;
}

// --- batch norm: input [N, C, *]
// --------------------------------------------------------------------------------------

Split per_channel(Value x) {
  return Split(x.dims(), [](int64_t i) { return i != 1; });
}

// momentum * observed + (1 - momentum) * running. No value when there is nothing to update.
Value update_running(LoweringContext& ctx, std::string_view name, Value observed) {
  if (!ctx.has(name)) return Value{};
  Builder& b = ctx.b;
  const Value momentum = b.broadcast_to(ctx.operand("momentum", observed.dtype()), observed.dims());
  const Value running = ctx.operand(name, observed.dtype());
  const Value updated =
      b.add(b.multiply(momentum, observed), b.multiply(b.subtract(b.splat_like(1.0, momentum), momentum), running));
  return b.convert(updated, ctx.tensor(name).dtype());
}

// Scales and shifts by the parameters, where given.
Value affine(LoweringContext& ctx, Value x, const Dims& positions) {
  if (const auto weight = parameter(ctx, "weight", x, positions)) x = ctx.b.multiply(x, *weight);
  if (const auto bias = parameter(ctx, "bias", x, positions)) x = ctx.b.add(x, *bias);
  return x;
}

// (output, mean, inverse deviation, running mean, running variance); the last two without value where unchanged.
Values batch_norm(LoweringContext& ctx, bool training) {
  Builder& b = ctx.b;
  const Value input = ctx.tensor("input");
  const Value x = b.convert(input, accumulate_dtype(input.dtype()));
  const Split split = per_channel(x);
  Value centered, center, inverse, running_mean, running_var;
  if (training) {
    const Normalized statistics(b, x, split);
    centered = statistics.centered;
    center = statistics.mean;
    inverse = inverse_deviation(ctx, statistics.variance);
    running_mean = update_running(ctx, "running_mean", center);
    const double count = static_cast<double>(split.count);
    const Value unbiased = b.multiply(statistics.variance, b.splat_like(count / (count - 1.0), center));
    running_var = update_running(ctx, "running_var", unbiased);
  } else {
    center = ctx.operand("running_mean", x.dtype());
    centered = b.subtract(x, spread(b, center, x, split));
    inverse = inverse_deviation(ctx, ctx.operand("running_var", x.dtype()));
  }
  const Value output = affine(ctx, b.multiply(centered, spread(b, inverse, x, split)), {1});
  return {b.convert(output, input.dtype()), center, inverse, running_mean, running_var};
}

// Outside training CPU's kernel saves empty statistics, and PyTorch's meta kernels disagree on it: follow the output.
Values batch_norm_of_schema(LoweringContext& ctx, bool training) {
  Values values = batch_norm(ctx, training);
  for (size_t i = 1; i <= 2; ++i) {
    const bool is_empty = ctx.has_outputs() ? ctx.output(i).numel() == 0 : !training;
    if (is_empty) values[i] = ctx.b.splat(0.0, {values[i].dtype(), {0}});
  }
  return values;
}

Values lower_native_batch_norm(LoweringContext& ctx) {
  Values values = batch_norm_of_schema(ctx, ctx.flag("training"));
  if (ctx.overload() == "no_stats") values.resize(3);
  return values;
}

Values lower_batch_norm_no_training(LoweringContext& ctx) {
  Values values = batch_norm_of_schema(ctx, false);
  values.resize(3);
  return values;
}

Values lower_batch_norm_with_update(LoweringContext& ctx) {
  Values values = batch_norm_of_schema(ctx, true);
  const Value reserve = ctx.b.splat(0, {DType::kU8, {0}});  // cuDNN's; empty everywhere else
  values.insert(values.begin() + 3, reserve);
  return values;
}

Values batch_norm_backward(LoweringContext& ctx, bool training, std::string_view saved_deviation) {
  Builder& b = ctx.b;
  const std::vector<bool> mask = ctx.bools("output_mask");
  const Value input = ctx.tensor("input");
  const DType dtype = accumulate_dtype(input.dtype());
  const Value x = b.convert(input, dtype);
  const Value grad = ctx.operand("grad_out", dtype);
  const Split split = per_channel(x);
  const Value center = ctx.operand(training ? "save_mean" : "running_mean", dtype);
  const Value inverse =
      training ? ctx.operand(saved_deviation, dtype) : inverse_deviation(ctx, ctx.operand("running_var", dtype));
  const Value x_hat = b.multiply(b.subtract(x, spread(b, center, x, split)), spread(b, inverse, x, split));

  const Value grad_bias = sum(b, grad, split);
  const Value grad_weight = sum(b, b.multiply(grad, x_hat), split);
  Value grad_input = grad;
  if (training) {
    const Value share = b.splat(1.0 / static_cast<double>(split.count), grad_bias.type());
    const Value along = b.multiply(x_hat, spread(b, b.multiply(grad_weight, share), x, split));
    grad_input = b.subtract(b.subtract(grad, spread(b, b.multiply(grad_bias, share), x, split)), along);
  }
  Value factor = inverse;
  if (ctx.has("weight")) factor = b.multiply(factor, ctx.operand("weight", dtype));
  grad_input = b.multiply(grad_input, spread(b, factor, x, split));

  const DType parameter_dtype = dtype_of(ctx, "weight", input.dtype());
  return {mask[0] ? b.convert(grad_input, input.dtype()) : Value{},
          mask[1] ? b.convert(grad_weight, parameter_dtype) : Value{},
          mask[2] ? b.convert(grad_bias, parameter_dtype) : Value{}};
}

Values lower_native_batch_norm_backward(LoweringContext& ctx) {
  return batch_norm_backward(ctx, ctx.flag("train"), "save_invstd");
}

// save_var holds the inverse deviation here too.
Values lower_batch_norm_backward(LoweringContext& ctx) {
  return batch_norm_backward(ctx, ctx.flag("update"), "save_var");
}

// --- layer norm: input [*, normalized_shape]
// --------------------------------------------------------------------------

Split per_row(LoweringContext& ctx, Value x) {
  const auto outer = x.rank() - static_cast<int64_t>(ctx.size("normalized_shape"));
  return Split(x.dims(), [outer](int64_t i) { return i >= outer; });
}

// Statistics keep the input's rank, with sizes of 1 where they were taken.
Value keep_dims(Builder& b, Value statistic, Value like, const Split& split) {
  Dims dims = like.dims();
  for (const int64_t i : split.reduced) dims[static_cast<size_t>(i)] = 1;
  return b.reshape(statistic, dims);
}

Values lower_native_layer_norm(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value input = ctx.tensor("input");
  const Value x = b.convert(input, accumulate_dtype(input.dtype()));
  const Split split = per_row(ctx, x);
  const Normalized statistics(b, x, split);
  const Value inverse = inverse_deviation(ctx, statistics.variance);
  const Value output = affine(ctx, b.multiply(statistics.centered, spread(b, inverse, x, split)), split.reduced);
  return {b.convert(output, input.dtype()), keep_dims(b, statistics.mean, x, split), keep_dims(b, inverse, x, split)};
}

Values lower_native_layer_norm_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const std::vector<bool> mask = ctx.bools("output_mask");
  const Value input = ctx.tensor("input");
  const DType dtype = accumulate_dtype(input.dtype());
  const Value x = b.convert(input, dtype);
  const Value grad = ctx.operand("grad_out", dtype);
  const Split split = per_row(ctx, x);
  const Dims rows(x.dims().begin(), x.dims().begin() + static_cast<int64_t>(split.kept.size()));
  const Value center = b.reshape(ctx.operand("mean", dtype), rows);
  const Value inverse = b.reshape(ctx.operand("rstd", dtype), rows);
  const Value x_hat = b.multiply(b.subtract(x, spread(b, center, x, split)), spread(b, inverse, x, split));

  Values result(3);
  if (mask[0]) {
    const auto weight = parameter(ctx, "weight", x, split.reduced);
    const Value scaled = weight ? b.multiply(grad, *weight) : grad;
    result[0] = b.convert(normalize_backward(b, scaled, x_hat, inverse, split), input.dtype());
  }
  const DType parameter_dtype = dtype_of(ctx, "weight", input.dtype());
  if (mask[1]) result[1] = b.convert(b.reduce(Reduction::kAdd, b.multiply(grad, x_hat), split.kept), parameter_dtype);
  if (mask[2]) result[2] = b.convert(b.reduce(Reduction::kAdd, grad, split.kept), parameter_dtype);
  return result;
}

// --- group norm: input [N, C, *], viewed as [N, group, C / group, HxW]
// ------------------------------------------------

struct Groups {
  Dims view, channels;  // [N, group, C / group, HxW], [group, C / group]
  Split split;          // over the last two dimensions of the view

  explicit Groups(LoweringContext& ctx)
      : view{ctx.integer("N"), ctx.integer("group"), ctx.integer("C") / ctx.integer("group"), ctx.integer("HxW")},
        channels{view[1], view[2]},
        split(view, [](int64_t i) { return i >= 2; }) {}

  // A parameter [C] in the view.
  std::optional<Value> parameter(LoweringContext& ctx, std::string_view name, DType dtype) const {
    if (!ctx.has(name)) return std::nullopt;
    return ctx.b.broadcast_in_dim(ctx.b.reshape(ctx.operand(name, dtype), channels), view, {1, 2});
  }
};

Values lower_native_group_norm(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value input = ctx.tensor("input");
  const DType dtype = accumulate_dtype(input.dtype());
  const Groups groups(ctx);
  const Value x = b.reshape(b.convert(input, dtype), groups.view);
  const Normalized statistics(b, x, groups.split);
  const Value inverse = inverse_deviation(ctx, statistics.variance);
  Value output = b.multiply(statistics.centered, spread(b, inverse, x, groups.split));
  if (const auto weight = groups.parameter(ctx, "weight", dtype)) output = b.multiply(output, *weight);
  if (const auto bias = groups.parameter(ctx, "bias", dtype)) output = b.add(output, *bias);
  const DType saved = dtype_of(ctx, "weight", input.dtype());
  return {b.convert(b.reshape(output, input.dims()), input.dtype()), b.convert(statistics.mean, saved),
          b.convert(inverse, saved)};
}

Values lower_native_group_norm_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const std::vector<bool> mask = ctx.bools("output_mask");
  const Value input = ctx.tensor("input");
  const DType dtype = accumulate_dtype(input.dtype());
  const Groups groups(ctx);
  const Value x = b.reshape(b.convert(input, dtype), groups.view);
  const Value grad = b.reshape(ctx.operand("grad_out", dtype), groups.view);
  const Dims statistics{groups.view[0], groups.view[1]};
  const Value center = b.reshape(ctx.operand("mean", dtype), statistics);
  const Value inverse = b.reshape(ctx.operand("rstd", dtype), statistics);
  const Value x_hat =
      b.multiply(b.subtract(x, spread(b, center, x, groups.split)), spread(b, inverse, x, groups.split));

  Values result(3);
  if (mask[0]) {
    const auto weight = groups.parameter(ctx, "weight", dtype);
    const Value grad_input =
        normalize_backward(b, weight ? b.multiply(grad, *weight) : grad, x_hat, inverse, groups.split);
    result[0] = b.convert(b.reshape(grad_input, input.dims()), input.dtype());
  }
  const DType parameter_dtype = dtype_of(ctx, "weight", input.dtype());
  const auto per_parameter = [&](Value gradient) {
    return b.convert(b.reshape(b.reduce(Reduction::kAdd, gradient, {0, 3}), {ctx.integer("C")}), parameter_dtype);
  };
  if (mask[1]) result[1] = per_parameter(b.multiply(grad, x_hat));
  if (mask[2]) result[2] = per_parameter(grad);
  return result;
}

// --- weight norm and renorm
// -------------------------------------------------------------------------------------------

Split all_but(LoweringContext& ctx, Value x) {
  const int64_t dim = ctx.integer("dim", 0) < 0 ? ctx.integer("dim") + x.rank() : ctx.integer("dim", 0);
  return Split(x.dims(), [dim](int64_t i) { return i != dim; });
}

// (w, norms): w = v * g / |v|, norms shaped like g.
Values lower_weight_norm(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value argument = ctx.tensor("v");
  const Value g = ctx.tensor("g");
  const DType dtype = accumulate_dtype(argument.dtype());
  const Value v = b.convert(argument, dtype);
  const Split split = all_but(ctx, v);
  const Value norm = b.sqrt(sum(b, b.multiply(v, v), split));
  const Value factor = b.divide(b.reshape(b.convert(g, dtype), norm.dims()), norm);
  return {b.convert(b.multiply(v, spread(b, factor, v, split)), argument.dtype()), b.reshape(norm, g.dims())};
}

// grad_g = sum(grad_w * v) / |v|;  grad_v = g / |v| * (grad_w - v * sum(grad_w * v) / |v|^2).
Values lower_weight_norm_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value argument = ctx.tensor("saved_v");
  const Value g_argument = ctx.tensor("saved_g");
  const DType dtype = accumulate_dtype(argument.dtype());
  const Value v = b.convert(argument, dtype);
  const Value grad = ctx.operand("grad_w", dtype);
  const Split split = all_but(ctx, v);
  const Value product = sum(b, b.multiply(grad, v), split);
  const Value norm = b.reshape(ctx.operand("saved_norms", dtype), product.dims());
  const Value g = b.reshape(b.convert(g_argument, dtype), product.dims());
  const Value grad_g = b.divide(product, norm);
  const Value along = b.multiply(v, spread(b, b.divide(grad_g, norm), v, split));
  const Value grad_v = b.multiply(spread(b, b.divide(g, norm), v, split), b.subtract(grad, along));
  return {b.convert(grad_v, argument.dtype()), b.convert(b.reshape(grad_g, g_argument.dims()), g_argument.dtype())};
}

Value p_norm(Builder& b, Value x, double p, const Split& split) {
  const Value magnitude = b.abs(x);
  if (std::isinf(p)) return b.reduce(Reduction::kMax, magnitude, split.reduced);
  if (p == 1.0) return sum(b, magnitude, split);
  if (p == 2.0) return b.sqrt(sum(b, b.multiply(magnitude, magnitude), split));
  const Value total = sum(b, b.power(magnitude, b.splat_like(p, magnitude)), split);
  return b.power(total, b.splat_like(1.0 / p, total));
}

// Scales down every slice along `dim` whose p-norm exceeds maxnorm.
Values lower_renorm(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value argument = ctx.tensor("self");
  if (is_complex(argument.dtype())) ctx.decline("complex tensors");
  const Value x = b.convert(argument, accumulate_dtype(argument.dtype()));
  const Split split = all_but(ctx, x);
  const Value norm = p_norm(b, x, ctx.real("p"), split);
  const Value limit = b.broadcast_to(ctx.operand("maxnorm", x.dtype()), norm.dims());
  const Value shrink = b.divide(limit, b.add(norm, b.splat_like(1e-7, norm)));
  const Value factor = b.select(b.compare(Comparison::kGt, norm, limit), shrink, b.splat_like(1.0, norm));
  return {b.convert(b.multiply(x, spread(b, factor, x, split)), argument.dtype())};
}

}  // namespace

const OpTable& norm_ops() {
  static const OpTable table = {
      {.name = "aten::native_batch_norm",
       .lower = lower_native_batch_norm,
       .static_args = {"eps"},
       .mutates = {"running_mean", "running_var"}},
      {.name = "aten::_native_batch_norm_legit", .lower = lower_native_batch_norm, .static_args = {"eps"}},
      {.name = "aten::_native_batch_norm_legit_no_training",
       .lower = lower_batch_norm_no_training,
       .static_args = {"eps"}},
      {.name = "aten::_batch_norm_with_update", .lower = lower_batch_norm_with_update, .static_args = {"eps"}},
      {.name = "aten::native_batch_norm_backward", .lower = lower_native_batch_norm_backward, .static_args = {"eps"}},
      {.name = "aten::batch_norm_backward", .lower = lower_batch_norm_backward, .static_args = {"eps"}},
      {.name = "aten::native_layer_norm", .lower = lower_native_layer_norm, .static_args = {"eps"}},
      {.name = "aten::native_layer_norm_backward", .lower = lower_native_layer_norm_backward},
      {.name = "aten::native_group_norm", .lower = lower_native_group_norm, .static_args = {"eps"}},
      {.name = "aten::native_group_norm_backward", .lower = lower_native_group_norm_backward},
      {.name = "aten::_weight_norm_interface", .lower = lower_weight_norm},
      {.name = "aten::_weight_norm_interface_backward", .lower = lower_weight_norm_backward},
      {.name = "aten::renorm", .lower = lower_renorm, .static_args = {"p"}},
  };
  return table;
}

}  // namespace torch_pjrt
