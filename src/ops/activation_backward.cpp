// Derivatives of activation functions: ATen's *_backward operators.
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/activation.h"

namespace torch_pjrt {
namespace {

using stablehlo::Value;
using stablehlo::Values;

Values lower_threshold_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"}, Rule::kSame);
  return args.finish(select(args("self") <= args("threshold"), 0.0, args("grad_output")));
}

Expr gelu_derivative(const Expr& x) {
  const Expr cdf = 0.5 * (1.0 + erf(x * (1.0 / std::numbers::sqrt2)));
  const double scale = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return cdf + x * (scale * exp(-0.5 * x * x));
}

Expr gelu_tanh_derivative(const Expr& x) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  constexpr double kCubic = 0.044715;
  const Expr t = tanh(scale * (x + kCubic * x * x * x));
  const Expr inner = scale * (1.0 + 3.0 * kCubic * x * x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner;
}

Values lower_gelu_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"});
  const Expr x = args("self");
  const bool is_tanh = ctx.string("approximate") == "tanh";
  return args.finish(args("grad_output") * (is_tanh ? gelu_tanh_derivative(x) : gelu_derivative(x)));
}

Values lower_silu_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"});
  const Expr x = args("self");
  if (is_complex(x.dtype())) {
    const Expr gate = 1.0 / (1.0 + exp(-x));
    return args.finish(args("grad_output") * conj(gate * (1.0 + x * (1.0 - gate))));
  }
  const Expr gate = logistic(x);
  return args.finish(args("grad_output") * gate * (1.0 + x * (1.0 - gate)));
}

Values lower_mish_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"});
  const Expr x = args("self");
  const Expr t = tanh(softplus(x));
  return args.finish(args("grad_output") * (t + x * logistic(x) * (1.0 - t * t)));
}

Values lower_elu_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self_or_result"});
  const Expr grad = args("grad_output");
  const Expr x = args("self_or_result");
  const Expr scale = args.number("scale", 1.0);
  const Expr negative_scale = args.number("alpha", 1.0) * scale;
  const Expr input_scale = args.number("input_scale", 1.0);
  const Expr slope =
      ctx.flag("is_result") ? input_scale * (x + negative_scale) : input_scale * negative_scale * exp(x * input_scale);
  return args.finish(select(x <= 0.0, grad * slope, grad * scale));
}

Values lower_softplus_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"});
  const Expr grad = args("grad_output");
  const Expr scaled = args("self") * args("beta");
  return args.finish(select(scaled > args("threshold"), grad, grad * logistic(scaled)));
}

Values lower_hardswish_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"});
  const Expr grad = args("grad_output");
  const Expr x = args("self");
  return args.finish(select(x <= -3.0, 0.0, select(x < 3.0, grad * (x / 3.0 + 0.5), grad)));
}

Values lower_hardsigmoid_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"});
  const Expr x = args("self");
  constexpr double kSixth = 1.0F / 6.0F;  // ATen's constant, for float64 too
  return args.finish(select((x > -3.0) & (x < 3.0), args("grad_output") * kSixth, 0.0));
}

Values lower_hardtanh_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"}, Rule::kSame);
  const Expr x = args("self");
  return args.finish(select((x <= args("min_val")) | (x >= args("max_val")), 0.0, args("grad_output")));
}

Values lower_leaky_relu_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"});
  const Expr grad = args("grad_output");
  return args.finish(select(args("self") > 0.0, grad, grad * args("negative_slope")));
}

Values lower_log_sigmoid_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"});
  return args.finish(args("grad_output") * logistic(-args("self")));
}

Values lower_glu_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"});
  const Expr grad = args("grad_output");
  const int64_t rank = ctx.tensor("self").rank();
  const int64_t dim = (ctx.integer("dim") + rank) % rank;
  const auto [value, gate_input] = split_halves(args("self"), dim);
  const Expr gate = logistic(gate_input);
  const Expr value_grad = grad * gate;
  const Expr gate_grad = value_grad * (1.0 - gate) * value;
  return args.finish(Expr(ctx.b, ctx.b.concatenate({value_grad, gate_grad}, dim)));
}

// Tangent of glu: `glu` is its result, `x` its input, `dx` the input's tangent.
Values lower_glu_jvp(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"glu", "x", "dx"});
  const auto [value, gate_input] = split_halves(args("x"), ctx.integer("dim"));
  const auto [value_tangent, gate_tangent] = split_halves(args("dx"), ctx.integer("dim"));
  const Expr gate = logistic(gate_input);
  return args.finish(value_tangent * gate + args("glu") * (gate_tangent - gate * gate_tangent));
}

Values lower_prelu_kernel_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self", "weight"});
  const Expr grad = args("grad_output");
  const Expr x = args("self");
  const Expr is_positive = x > 0.0;
  const Value self_grad = args.finish(select(is_positive, grad, args("weight") * grad))[0];
  return {self_grad, args.finish(select(is_positive, 0.0, x * grad))[0]};
}

// hardshrink_backward and softshrink_backward: the gradient passes outside [-lambd, lambd].
Values lower_shrink_backward(LoweringContext& ctx) {
  const std::string_view grad_name = ctx.has("grad_out") ? "grad_out" : "grad_output";
  const ActivationContext args(ctx, {grad_name, "self"}, Rule::kSame);
  const Expr x = args("self");
  const Expr lambd = args("lambd");
  return args.finish(select((x >= -lambd) & (x <= lambd), 0.0, args(grad_name)));
}

Values lower_tanh_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "output"});
  const Expr y = args("output");
  return args.finish(args("grad_output") * conj(1.0 - y * y));
}

Values lower_sigmoid_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "output"});
  const Expr y = args("output");
  return args.finish(args("grad_output") * conj((1.0 - y) * y));
}

Values lower_logit_backward(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"grad_output", "self"});
  const Expr x = args("self");
  const Expr inside = args("grad_output") / (x * (1.0 - x));
  const bool clamps = ctx.has("eps") && ctx.real("eps") >= 0.0;
  if (!clamps) {
    return args.finish(select((x < 0.0) | (x > 1.0), std::numeric_limits<double>::quiet_NaN(), inside));
  }
  const Expr low = x.like(ctx.real("eps"));
  return args.finish(select((x < low) | (x > 1.0 - low), 0.0, inside));
}

// native_dropout's backward for older schemas: grad * mask * scale.
Values lower_masked_scale(LoweringContext& ctx) {
  const ActivationContext args(ctx, {"self"});
  return args.finish(args("self") * args("mask") * args("scale"));
}

}  // namespace

const OpTable& activation_backward_ops() {
  static const OpTable table = {
      {"aten::threshold_backward", lower_threshold_backward},
      {"aten::gelu_backward", lower_gelu_backward},
      {"aten::silu_backward", lower_silu_backward},
      {"aten::mish_backward", lower_mish_backward},
      {"aten::elu_backward", lower_elu_backward},
      {"aten::softplus_backward", lower_softplus_backward},
      {"aten::hardswish_backward", lower_hardswish_backward},
      {"aten::hardsigmoid_backward", lower_hardsigmoid_backward},
      {"aten::hardtanh_backward", lower_hardtanh_backward},
      {"aten::leaky_relu_backward", lower_leaky_relu_backward},
      {"aten::log_sigmoid_backward", lower_log_sigmoid_backward},
      {"aten::glu_backward", lower_glu_backward},
      {"aten::glu_jvp", lower_glu_jvp},
      {"aten::_prelu_kernel_backward", lower_prelu_kernel_backward},
      {"aten::hardshrink_backward", lower_shrink_backward},
      {"aten::softshrink_backward", lower_shrink_backward},
      {"aten::tanh_backward", lower_tanh_backward},
      {"aten::sigmoid_backward", lower_sigmoid_backward},
      {"aten::logit_backward", lower_logit_backward, {"eps"}},
      {"aten::_masked_scale", lower_masked_scale},
  };
  return table;
}

}  // namespace torch_pjrt
