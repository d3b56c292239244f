// Activation functions. Formulas are those of ATen's CPU kernels, in float32 for the 16-bit floats.
#include "ops/activation.h"

#include <cmath>
#include <numbers>

namespace torch_pjrt {

using stablehlo::Value;
using stablehlo::Values;

ActivationContext::ActivationContext(LoweringContext& ctx, std::initializer_list<std::string_view> tensors, Rule rule)
    : ctx_(ctx), types_(elementwise_types(rule, ctx.result_type(tensors), default_floating(ctx))) {}

Expr ActivationContext::operator()(std::string_view name) const { return {ctx_.b, ctx_.operand(name, types_.compute)}; }

Expr ActivationContext::number(std::string_view name, double fallback) const {
  return {ctx_.b, ctx_.number(name, types_.compute, fallback)};
}

Values ActivationContext::finish(const Expr& result) const { return {torch_pjrt::finish(result, types_)}; }

std::pair<Expr, Expr> split_halves(const Expr& x, int64_t dim) {
  if (dim < 0) dim += x.value().rank();
  stablehlo::Builder& b = x.builder();
  const int64_t size = x.value().dim(dim);
  return {Expr(b, b.slice_dim(x, dim, 0, size / 2)), Expr(b, b.slice_dim(x, dim, size / 2, size))};
}

namespace {

// The standard normal distribution function.
Expr normal_cdf(const Expr& x) { return 0.5 * (1.0 + erf(x * (1.0 / std::numbers::sqrt2))); }

Values lower_gelu(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  const Expr x = args("self");
  if (ctx.string("approximate") != "tanh") return args.finish(x * normal_cdf(x));
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return args.finish(0.5 * x * (1.0 + tanh(scale * (x + 0.044715 * x * x * x))));
}

Values lower_silu(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  const Expr x = args("self");
  if (is_complex(x.dtype())) return args.finish(x / (1.0 + exp(-x)));
  return args.finish(x * logistic(x));
}

Values lower_mish(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  const Expr x = args("self");
  return args.finish(x * tanh(softplus(x)));
}

Values lower_elu(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  const Expr x = args("self");
  const Expr scale = args.number("scale", 1.0);
  const Expr negative = expm1(x * args.number("input_scale", 1.0)) * (args.number("alpha", 1.0) * scale);
  return args.finish(select(x < 0.0, negative, x * scale));
}

Values lower_celu(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  const Expr x = args("self");
  const Expr alpha = args.number("alpha", 1.0);
  return args.finish(select(x < 0.0, expm1(x * (1.0 / alpha)) * alpha, x));
}

Values lower_softplus(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  const Expr x = args("self");
  const Expr beta = args.number("beta", 1.0);
  const Expr scaled = x * beta;
  return args.finish(select(scaled > args.number("threshold", 20.0), x, log1p(exp(scaled)) / beta));
}

Values lower_hardswish(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  const Expr x = args("self");
  return args.finish(x * minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0);
}

Values lower_hardsigmoid(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  return args.finish(minimum(maximum(args("self") + 3.0, 0.0), 6.0) / 6.0);
}

Values lower_hardtanh(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"}, Rule::kSame);
  return args.finish(minimum(maximum(args("self"), args.number("min_val", -1.0)), args.number("max_val", 1.0)));
}

Values lower_leaky_relu(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  const Expr x = args("self");
  return args.finish(select(x > 0.0, x, x * args.number("negative_slope", 0.01)));
}

Values lower_threshold(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"}, Rule::kSame);
  const Expr x = args("self");
  return args.finish(select(x <= args("threshold"), args("value"), x));
}

// Also gives the buffer exp(-|x|) that ATen's CPU kernel keeps; the backward recomputes it, so it may be empty.
Values lower_log_sigmoid_forward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  const Expr x = args("self");
  const Expr decay = exp(-abs(x));
  const Value output = args.finish(minimum(x, 0.0) - log1p(decay))[0];
  const bool wants_buffer = !ctx.has_outputs() || ctx.output(1).dims == x.dims();
  const Value buffer = wants_buffer ? args.finish(decay)[0] : ctx.b.splat(0.0, {output.dtype(), ctx.output(1).dims});
  return {output, buffer};
}

Values lower_glu(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  const auto [value, gate] = split_halves(args("self"), ctx.integer("dim", -1));
  return args.finish(value * logistic(gate));
}

Values lower_prelu_kernel(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self", "weight"});
  const Expr x = args("self");
  return args.finish(select(x > 0.0, x, args("weight") * x));
}

Values lower_hardshrink(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"}, Rule::kSame);
  const Expr x = args("self");
  const Expr lambd = args.number("lambd", 0.5);
  return args.finish(select((x >= -lambd) & (x <= lambd), 0.0, x));
}

// x * 0 in the middle keeps NaN.
Values lower_softshrink(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"}, Rule::kSame);
  const Expr x = args("self");
  const Expr lambd = args.number("lambd", 0.5);
  return args.finish(select(x > lambd, x - lambd, select(x < -lambd, x + lambd, x * 0.0)));
}

}  // namespace

const OpTable& activation_ops() {
  static const OpTable table = {
      {"aten::gelu", lower_gelu},
      {"aten::silu", lower_silu},
      {"aten::mish", lower_mish},
      {"aten::elu", lower_elu},
      {"aten::celu", lower_celu},
      {"aten::softplus", lower_softplus},
      {"aten::hardswish", lower_hardswish},
      {"aten::hardsigmoid", lower_hardsigmoid},
      {"aten::hardtanh", lower_hardtanh},
      {"aten::leaky_relu", lower_leaky_relu},
      {"aten::threshold", lower_threshold},
      {"aten::log_sigmoid_forward", lower_log_sigmoid_forward},
      {"aten::glu", lower_glu},
      {"aten::_prelu_kernel", lower_prelu_kernel},
      {"aten::hardshrink", lower_hardshrink},
      {"aten::softshrink", lower_softshrink},
  };
  return table;
}

}  // namespace torch_pjrt
