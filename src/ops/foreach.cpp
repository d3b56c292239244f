// _foreach_* operators: one node for a whole list, in the formulas of the operators on single tensors.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>

#include "ops/cast.h"
#include "ops/elementwise.h"
#include "ops/reduction.h"

namespace torch_pjrt {
namespace {

using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

constexpr std::string_view kPrefix = "aten::_foreach_";

// Item `i` of a list, or the one tensor or number that stands for all items.
Value item(const LoweringContext& ctx, std::string_view name, size_t i, DType dtype) {
  return ctx.operand(name, ctx.size(name) == 1 ? 0 : i, dtype);
}

// The first of `names` that the call has.
std::string_view present(const LoweringContext& ctx, std::initializer_list<std::string_view> names) {
  const auto it = std::find_if(names.begin(), names.end(), [&](std::string_view name) { return ctx.has(name); });
  TP_CHECK(it != names.end(), ctx.name(), ": an operand is missing");
  return *it;
}

std::string single_name(const LoweringContext& ctx) {
  return "aten::" + std::string(ctx.name().substr(kPrefix.size()));
}

Values lower_unary(LoweringContext& ctx) {
  const UnaryOp& op = unary_function(single_name(ctx));
  Values results;
  for (const Value& x : ctx.tensors("self")) {
    results.push_back(apply(op, Expr(ctx.b, x), default_floating(ctx, results.size())));
  }
  return results;
}

const std::array kBinary{
    BinaryOp{"add", Rule::kArithmetic, add_any},
    BinaryOp{"sub", Rule::kArithmetic, [](const Expr& x, const Expr& y) { return x - y; }},
    BinaryOp{"mul", Rule::kArithmetic, multiply_any},
    BinaryOp{"div", Rule::kFloating, [](const Expr& x, const Expr& y) { return x / y; }},
    BinaryOp{"pow", Rule::kWide, power_dynamic},
    BinaryOp{"maximum", Rule::kSame, [](const Expr& x, const Expr& y) { return maximum(x, y); }},
    BinaryOp{"minimum", Rule::kSame, [](const Expr& x, const Expr& y) { return minimum(x, y); }},
    BinaryOp{"clamp_min", Rule::kSame, [](const Expr& x, const Expr& y) { return maximum(x, y); }},
    BinaryOp{"clamp_max", Rule::kSame, [](const Expr& x, const Expr& y) { return minimum(x, y); }},
};

const BinaryOp& binary_row(const LoweringContext& ctx) {
  const std::string_view name = ctx.name().substr(kPrefix.size());
  const auto it = std::find_if(kBinary.begin(), kBinary.end(), [&](const BinaryOp& op) { return op.name == name; });
  TP_CHECK(it != kBinary.end(), "no binary operator ", ctx.name());
  return *it;
}

bool is_tensor_of(const LoweringContext& ctx, std::string_view name, size_t i, DType dtype) {
  return ctx.tensor_dtype(name, ctx.size(name) == 1 ? 0 : i) == dtype;
}

// Items of equal operands get one value. The counters of steps that an optimizer keeps for each parameter start as one
// constant and are counted together: lower.h makes them one output.
Values lower_binary(LoweringContext& ctx) {
  const BinaryOp& op = binary_row(ctx);
  const std::string_view rhs = present(ctx, {"scalar", "scalars", "other", "exponent"});
  const bool scaled = ctx.has("alpha") && ctx.static_number("alpha") != 1.0;
  const size_t count = std::max(ctx.size("self"), ctx.size(rhs));
  // Operands as they are given: a number that stands for all items is none, and each of several is its own.
  const bool has_tensors = ctx.tensor_dtype(rhs).has_value();
  using Operands = std::tuple<Value, Value, size_t>;
  std::map<Operands, Value> known;
  const Values lhs_items = ctx.tensors("self");
  const Values rhs_items = has_tensors ? ctx.tensors(rhs) : Values();
  const auto operands = [&](size_t i) -> Operands {
    const Value lhs = lhs_items[lhs_items.size() == 1 ? 0 : i];
    if (has_tensors) return {lhs, rhs_items[rhs_items.size() == 1 ? 0 : i], 0};
    return {lhs, Value(), ctx.size(rhs) == 1 ? 0 : i};
  };
  Values results;
  for (size_t i = 0; i < count; ++i) {
    const DType dtype = ctx.item_result_type({"self", rhs}, i);
    const bool mixed = scaled || !is_tensor_of(ctx, "self", i, dtype) || !is_tensor_of(ctx, rhs, i, dtype);
    const ElementwiseTypes types = elementwise_types(op.rule, dtype, default_floating(ctx, i), mixed);
    Value& result = known[operands(i)];
    if (!result) {
      const Expr x(ctx.b, item(ctx, "self", i, types.compute));
      Expr y(ctx.b, item(ctx, rhs, i, types.compute));
      if (scaled) y = multiply_any(y, Expr(ctx.b, ctx.operand("alpha", types.compute)));
      result = finish(op.function(x, y), types);
    }
    results.push_back(result);
  }
  return results;
}

// As lower_binary; a constant exponent chooses the cheaper exact forms.
Values lower_pow(LoweringContext& ctx) {
  const auto exponent = ctx.static_number("exponent");
  if (!exponent) return lower_binary(ctx);
  Values results;
  for (size_t i = 0; i < ctx.size("self"); ++i) {
    const DType dtype = ctx.item_result_type({"self", "exponent"}, i);
    if (is_integral(dtype) && *exponent < 0.0) ctx.decline("negative power of integers");
    const ElementwiseTypes types = elementwise_types(Rule::kWide, dtype, dtype);
    const Expr x(ctx.b, item(ctx, "self", i, types.compute));
    results.push_back(finish(power_static(x, *exponent, dtype), types));
  }
  return results;
}

Values lower_lerp(LoweringContext& ctx) {
  const std::string_view weight = present(ctx, {"weight", "weights"});
  Values results;
  for (size_t i = 0; i < ctx.size("self"); ++i) {
    const DType dtype = ctx.item_result_type({"self", "tensors1"}, i);
    const ElementwiseTypes types = elementwise_types(Rule::kWide, dtype, dtype);
    const auto read = [&](std::string_view name) { return Expr(ctx.b, item(ctx, name, i, types.compute)); };
    results.push_back(finish(lerp(read("self"), read("tensors1"), read(weight)), types));
  }
  return results;
}

// The factor of item `i`: a number, or one element of the tensor overload's packed `scalars`.
std::optional<Expr> addc_value(LoweringContext& ctx, size_t i, DType dtype) {
  if (ctx.static_number("value") == 1.0) return std::nullopt;
  if (!ctx.is_tensor("scalars")) {
    return Expr(ctx.b, item(ctx, present(ctx, {"value", "scalars"}), i, dtype));
  }
  const auto index = static_cast<int64_t>(i);
  const Value packed = ctx.b.convert(ctx.tensor("scalars"), dtype);
  return Expr(ctx.b, ctx.b.reshape(ctx.b.slice_dim(packed, 0, index, index + 1), {}));
}

Values lower_addc(LoweringContext& ctx) {
  const auto formula = ctx.name() == "aten::_foreach_addcmul" ? addcmul : addcdiv;
  Values results;
  for (size_t i = 0; i < ctx.size("self"); ++i) {
    const DType dtype = ctx.item_result_type({"self", "tensor1", "tensor2"}, i);
    const ElementwiseTypes types = elementwise_types(Rule::kWide, dtype, dtype);
    const auto read = [&](std::string_view name) { return Expr(ctx.b, item(ctx, name, i, types.compute)); };
    const auto value = addc_value(ctx, i, types.compute);
    results.push_back(finish(formula(read("self"), read("tensor1"), read("tensor2"), value), types));
  }
  return results;
}

Values lower_max(LoweringContext& ctx) {
  Values results;
  for (const Value& x : ctx.tensors("self")) {
    results.push_back(ReductionDims(x.dims()).reduce(Reduction::kMax, Expr(ctx.b, x)));
  }
  return results;
}

// _foreach_norm and _foreach_powsum, of all elements of each tensor.
Values lower_norm(LoweringContext& ctx) {
  const double ord = ctx.real("ord", 2.0);
  Values results;
  for (const Value& self : ctx.tensors("self")) {
    const DType dtype = ctx.dtype("dtype").value_or(self.dtype());
    const Expr x(ctx.b, cast(ctx.b, self, wide(dtype)));
    const ReductionDims dims(x.dims());
    const bool is_norm = ctx.name() == "aten::_foreach_norm";
    results.push_back(
        (is_norm ? vector_norm(x, ord, dims) : sum_of_powers(abs(x), ord, dims)).convert(real_dtype(dtype)));
  }
  return results;
}

Values lower_copy(LoweringContext& ctx) {
  const Values sources = ctx.tensors("src");
  Values results;
  for (const Value& source : sources) {
    const TensorType& type = ctx.output(results.size());
    results.push_back(ctx.b.broadcast_to(cast(ctx.b, source, type.dtype), type.dims));
  }
  return results;
}

Values lower_zero(LoweringContext& ctx) {
  Values results;
  for (size_t i = 0; i < ctx.num_outputs(); ++i) results.push_back(ctx.b.splat(0, ctx.output(i)));
  return results;
}

Values lower_clone(LoweringContext& ctx) { return ctx.tensors("self"); }

}  // namespace

const OpTable& foreach_ops() {
  static const OpTable table = [] {
    OpTable entries;
    for (const std::string_view name :
         {"aten::_foreach_abs",   "aten::_foreach_acos",   "aten::_foreach_asin",    "aten::_foreach_atan",
          "aten::_foreach_ceil",  "aten::_foreach_cos",    "aten::_foreach_cosh",    "aten::_foreach_erf",
          "aten::_foreach_erfc",  "aten::_foreach_exp",    "aten::_foreach_expm1",   "aten::_foreach_floor",
          "aten::_foreach_frac",  "aten::_foreach_lgamma", "aten::_foreach_log",     "aten::_foreach_log10",
          "aten::_foreach_log1p", "aten::_foreach_log2",   "aten::_foreach_neg",     "aten::_foreach_reciprocal",
          "aten::_foreach_round", "aten::_foreach_rsqrt",  "aten::_foreach_sigmoid", "aten::_foreach_sign",
          "aten::_foreach_sin",   "aten::_foreach_sinh",   "aten::_foreach_sqrt",    "aten::_foreach_tan",
          "aten::_foreach_tanh",  "aten::_foreach_trunc"}) {
      entries.push_back({name, lower_unary});
    }
    for (const std::string_view name : {"aten::_foreach_add", "aten::_foreach_sub"}) {
      entries.push_back({.name = name, .lower = lower_binary, .constant_defaults = {"alpha"}});
    }
    for (const std::string_view name :
         {"aten::_foreach_mul", "aten::_foreach_div", "aten::_foreach_maximum", "aten::_foreach_minimum",
          "aten::_foreach_clamp_min", "aten::_foreach_clamp_max"}) {
      entries.push_back({name, lower_binary});
    }
    for (const std::string_view name : {"aten::_foreach_addcmul", "aten::_foreach_addcdiv"}) {
      entries.push_back({.name = name, .lower = lower_addc, .constant_defaults = {"value"}});
    }
    entries.push_back({"aten::_foreach_pow", lower_pow, {"exponent"}});
    entries.push_back({"aten::_foreach_lerp", lower_lerp});
    entries.push_back({"aten::_foreach_max", lower_max});
    entries.push_back({"aten::_foreach_norm", lower_norm, {"ord"}});
    entries.push_back({"aten::_foreach_powsum", lower_norm, {"ord"}});
    entries.push_back({.name = "aten::_foreach_copy", .lower = lower_copy, .unread = {"self"}});
    entries.push_back({.name = "aten::_foreach_zero", .lower = lower_zero, .unread = {"self"}});
    entries.push_back({"aten::_foreach_clone", lower_clone});
    return entries;
  }();
  return table;
}

}  // namespace torch_pjrt
