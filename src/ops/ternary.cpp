// Elementwise operators of three operands: where, clamp, lerp, addcmul, addcdiv.
#include "ops/elementwise.h"

namespace torch_pjrt {

using stablehlo::Value;
using stablehlo::Values;

Expr lerp(const Expr& start, const Expr& end, const Expr& weight) {
  // ATen's two forms, start + weight * (end - start) and end - (1 - weight) * (end - start), share their last steps.
  const Expr near_start = abs(weight) < 0.5;
  const Expr coefficient = select(near_start, weight, weight - 1.0);
  return select(near_start, start, end) + coefficient * (end - start);
}

Expr addcmul(const Expr& self, const Expr& tensor1, const Expr& tensor2, const std::optional<Expr>& value) {
  return self + (value ? *value * tensor1 : tensor1) * tensor2;
}

Expr addcdiv(const Expr& self, const Expr& tensor1, const Expr& tensor2, const std::optional<Expr>& value) {
  return self + (value ? *value * tensor1 : tensor1) / tensor2;
}

namespace {

Values lower_where(LoweringContext& ctx) {
  const DType dtype = ctx.result_type({"self", "other"});
  const Expr condition = Expr(ctx.b, ctx.tensor("condition")).convert(DType::kPred);
  return {select(condition, Expr(ctx.b, ctx.operand("self", dtype)), Expr(ctx.b, ctx.operand("other", dtype)))};
}

// clamp, clamp_min and clamp_max: min(max(self, min), max), where NaN wins everywhere.
Values lower_clamp(LoweringContext& ctx) {
  const DType dtype = ctx.result_type({"self", "min", "max"});
  Expr x(ctx.b, ctx.operand("self", dtype));
  if (ctx.has("min")) x = maximum(x, Expr(ctx.b, ctx.operand("min", dtype)));
  if (ctx.has("max")) x = minimum(x, Expr(ctx.b, ctx.operand("max", dtype)));
  return {x};
}

Values lower_lerp(LoweringContext& ctx) {
  const DType dtype = ctx.result_type({"self", "end"});
  const ElementwiseTypes types = elementwise_types(Rule::kWide, dtype, dtype);
  const auto read = [&](std::string_view name) { return Expr(ctx.b, ctx.operand(name, types.compute)); };
  return {finish(lerp(read("self"), read("end"), read("weight")), types)};
}

Values lower_addc(LoweringContext& ctx) {
  const DType dtype = ctx.result_type({"self", "tensor1", "tensor2"});
  const ElementwiseTypes types = elementwise_types(Rule::kWide, dtype, dtype);
  const auto read = [&](std::string_view name) { return Expr(ctx.b, ctx.operand(name, types.compute)); };
  std::optional<Expr> value;
  if (ctx.has("value") && ctx.static_number("value") != 1.0) value = read("value");
  const auto formula = ctx.name() == "aten::addcmul" ? addcmul : addcdiv;
  return {finish(formula(read("self"), read("tensor1"), read("tensor2"), value), types)};
}

}  // namespace

const OpTable& ternary_ops() {
  static const OpTable table = {
      {"aten::where", lower_where},
      {"aten::clamp", lower_clamp},
      {"aten::clamp_min", lower_clamp},
      {"aten::clamp_max", lower_clamp},
      {"aten::lerp", lower_lerp},
      {.name = "aten::addcmul", .lower = lower_addc, .constant_defaults = {"value"}},
      {.name = "aten::addcdiv", .lower = lower_addc, .constant_defaults = {"value"}},
  };
  return table;
}

}  // namespace torch_pjrt
