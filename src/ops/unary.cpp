// Elementwise operators of one tensor.
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/special.h"

namespace torch_pjrt {
namespace {

using stablehlo::Values;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = std::numbers::pi;

// Rounding leaves integers alone.
Expr round_with(const Expr& x, std::string_view mnemonic) { return is_floating(x.dtype()) ? x.unary(mnemonic) : x; }

Expr absolute(const Expr& x) { return is_signed(x.dtype()) ? abs(x) : x; }

// ATen's sign of NaN is 0, as of both zeros.
Expr sign(const Expr& x) {
  if (x.dtype() == DType::kPred) return x;
  return select(x > 0.0, 1.0, select(x < 0.0, -1.0, x.like(0.0)));
}

Expr sgn(const Expr& x) {
  if (!is_complex(x.dtype())) return sign(x);
  const Expr length = abs(x);
  return select(length == 0.0, x.like(0.0), x / complex(length, length.like(0.0)));
}

Expr reciprocal(const Expr& x) { return x.like(1.0) / x; }

Expr sigmoid(const Expr& x) { return is_complex(x.dtype()) ? 1.0 / (1.0 + exp(-x)) : logistic(x); }

Expr is_infinite(const Expr& x) {
  if (is_complex(x.dtype())) return is_infinite(real(x)) | is_infinite(imag(x));
  if (!is_floating(x.dtype())) return x != x;
  return abs(x) == kInfinity;
}

Expr equals_infinity(const Expr& x, double infinity) { return is_floating(x.dtype()) ? x == infinity : x != x; }

Expr logical_not(const Expr& x) { return x == x.like(0.0); }

Expr angle(const Expr& x) {
  if (is_complex(x.dtype())) return atan2(imag(x), real(x));
  return select(is_nan(x), x, select(x < 0.0, x.like(kPi), x.like(0.0)));
}

// XLA CPU (jaxlib 0.11) computes a vectorized atan wrong, and makes one of atan2 with a constant 1.
Expr atan(const Expr& x) {
  if (is_complex(x.dtype())) return x.unary("chlo.atan");
  return atan2(x, select(abs(x) < kInfinity, x.like(1.0), x.like(2.0)));
}

// Keeps -0.0, as CPU does; a maximum would not.
Expr relu(const Expr& x) { return select(x < 0.0, x.like(0.0), x); }

Expr sinc(const Expr& x) {
  const Expr scaled = x * kPi;
  return select(x == x.like(0.0), x.like(1.0), sin(scaled) / scaled);
}

Expr log_base(const Expr& x, double base) { return log(x) / std::log(base); }

Expr exp2(const Expr& x) { return is_complex(x.dtype()) ? exp(x * std::numbers::ln2) : power(x.like(2.0), x); }

Expr digamma(const Expr& x) { return select(x == 0.0, copysign(x.like(kInfinity), -x), x.unary("chlo.digamma")); }

Values lower_unary(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  return {apply(unary_function(ctx.name()), x, default_floating(ctx))};
}

Values lower_relu(LoweringContext& ctx) {
  if (ctx.tensor_dtype("self") == DType::kPred) ctx.decline("bool input");
  return lower_unary(ctx);
}

// Rounds halves to even, at a decimal place when the call names one.
Values lower_round(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  const int64_t decimals = ctx.integer("decimals", 0);
  if (!is_floating(x.dtype())) {
    if (decimals != 0) ctx.decline("decimals of an integer tensor");
    return {x};
  }
  if (decimals == 0) return {x.unary("stablehlo.round_nearest_even")};
  const Expr y = x.convert(wide(x.dtype()));
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  const Expr scaled = decimals > 0 ? y * scale : y / scale;
  const Expr rounded = scaled.unary("stablehlo.round_nearest_even");
  return {(decimals > 0 ? rounded / scale : rounded * scale).convert(x.dtype())};
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504.0;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    case DType::kF8E4M3FN:
      return 448.0;
    case DType::kF8E5M2:
      return 57344.0;
    default:
      return std::numeric_limits<double>::max();
  }
}

// NaN, inf and -inf become the given numbers; by default 0 and the largest and smallest finite number.
Values lower_nan_to_num(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  if (!is_floating(x.dtype())) {
    if (is_complex(x.dtype())) ctx.decline("complex input");
    return {x};
  }
  const auto replacement = [&](std::string_view name, double sign) {
    if (ctx.has(name)) return Expr(ctx.b, ctx.operand(name, x.dtype()));
    return x.like(sign * largest_finite(x.dtype()));
  };
  const Expr nan(ctx.b, ctx.number("nan", x.dtype(), 0.0));
  const Expr finite =
      select(x == kInfinity, replacement("posinf", 1.0), select(x == -kInfinity, replacement("neginf", -1.0), x));
  return {select(is_nan(x), nan, finite)};
}

Values lower_logit(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  const ElementwiseTypes types = elementwise_types(Rule::kFloating, x.dtype(), default_floating(ctx));
  Expr p = x.convert(types.compute);
  if (ctx.has("eps") && ctx.real("eps") >= 0.0) {
    const double eps = ctx.real("eps");
    const Expr low = p.like(eps);
    const Expr high = 1.0 - low;
    p = select(p < low, low, select(p > high, high, p));
  }
  return {finish(log(p / (1.0 - p)), types)};
}

// self == mantissa * 2**exponent with 0.5 <= |mantissa| < 1; zeros, infinities and NaN are their own mantissa. Only
// integers see a subnormal number: float arithmetic takes it for zero on many devices.
Values lower_frexp(LoweringContext& ctx) {
  stablehlo::Builder& b = ctx.b;
  const Expr x(b, ctx.tensor("self"));
  if (!is_floating(x.dtype())) ctx.decline("only floating dtypes");
  const FloatFormat format = float_format(x.dtype());
  const Expr bits = bits_of(x);
  const auto constant = [&](int64_t value) { return Expr(b, b.splat(value, bits.value().type())); };
  const Expr sign = bits & constant(std::numeric_limits<int64_t>::min() >> (64 - format.bits));
  const Expr magnitude = bits ^ sign;
  const int64_t exponent_mask = (int64_t{1} << format.exponent_bits) - 1;
  // A subnormal fraction is shifted until its leading bit is where a normal number has its hidden one.
  const Expr leading_zeros = magnitude.unary("stablehlo.count_leading_zeros") - constant(format.bits);
  const Expr shift = maximum(leading_zeros + constant(format.fraction_bits + 1), constant(0));
  const Expr raw(b, b.shift_right_logical(magnitude, constant(format.fraction_bits)));
  const Expr fraction =
      magnitude.binary("stablehlo.shift_left", shift) & constant((int64_t{1} << format.fraction_bits) - 1);
  const int64_t half = (exponent_mask >> 1) - 1;  // the biased exponent of 0.5
  const Expr mantissa = sign | fraction | constant(half << format.fraction_bits);
  const Expr is_special = (magnitude == constant(0)) | (raw == constant(exponent_mask));
  const Expr exponent = maximum(raw, constant(1)) - shift - constant(half);
  return {b.bitcast_convert(select(is_special, bits, mantissa), x.dtype()),
          select(is_special, constant(0), exponent).convert(DType::kS32)};
}

}  // namespace

namespace {

const std::vector<UnaryOp>& plain_functions() {
  static const std::vector<UnaryOp> rows = {
      {"aten::abs", Rule::kSame, absolute},
      {"aten::neg", Rule::kSame, [](const Expr& x) { return -x; }},
      {"aten::sign", Rule::kSame, sign},
      {"aten::sgn", Rule::kSame, sgn},
      {"aten::ceil", Rule::kSame, [](const Expr& x) { return round_with(x, "stablehlo.ceil"); }},
      {"aten::floor", Rule::kSame, [](const Expr& x) { return round_with(x, "stablehlo.floor"); }},
      {"aten::trunc", Rule::kSame, truncate},
      {"aten::round", Rule::kSame, [](const Expr& x) { return round_with(x, "stablehlo.round_nearest_even"); }},
      {"aten::frac", Rule::kSame, [](const Expr& x) { return x - truncate(x); }},
      {"aten::relu", Rule::kSame, relu},
      {"aten::conj_physical", Rule::kSame, conj},
      {"aten::_conj_physical", Rule::kSame, conj},
      {"aten::bitwise_not", Rule::kSame, [](const Expr& x) { return ~x; }},
      {"aten::logical_not", Rule::kSame, logical_not},
      {"aten::signbit", Rule::kSame, signbit},
      {"aten::isnan", Rule::kSame, is_nan},
      {"aten::isinf", Rule::kSame, is_infinite},
      {"aten::isposinf", Rule::kSame, [](const Expr& x) { return equals_infinity(x, kInfinity); }},
      {"aten::isneginf", Rule::kSame, [](const Expr& x) { return equals_infinity(x, -kInfinity); }},
      {"aten::angle", Rule::kFloating, angle},
      {"aten::reciprocal", Rule::kFloating, reciprocal},
      {"aten::sqrt", Rule::kFloating, [](const Expr& x) { return sqrt(x); }},
      {"aten::rsqrt", Rule::kFloating, [](const Expr& x) { return rsqrt(x); }},
      {"aten::exp", Rule::kFloating, [](const Expr& x) { return exp(x); }},
      {"aten::exp2", Rule::kFloating, exp2},
      {"aten::expm1", Rule::kFloating, [](const Expr& x) { return expm1(x); }},
      {"aten::log", Rule::kFloating, [](const Expr& x) { return log(x); }},
      {"aten::log2", Rule::kFloating, [](const Expr& x) { return log_base(x, 2.0); }},
      {"aten::log10", Rule::kFloating, [](const Expr& x) { return log_base(x, 10.0); }},
      {"aten::log1p", Rule::kFloating, [](const Expr& x) { return log1p(x); }},
      {"aten::sin", Rule::kFloating, [](const Expr& x) { return sin(x); }},
      {"aten::cos", Rule::kFloating, [](const Expr& x) { return cos(x); }},
      {"aten::tan", Rule::kFloating, [](const Expr& x) { return x.unary("stablehlo.tan"); }},
      {"aten::sinh", Rule::kFloating, [](const Expr& x) { return x.unary("chlo.sinh"); }},
      {"aten::cosh", Rule::kFloating, [](const Expr& x) { return x.unary("chlo.cosh"); }},
      {"aten::tanh", Rule::kFloating, [](const Expr& x) { return tanh(x); }},
      {"aten::asin", Rule::kFloating, [](const Expr& x) { return x.unary("chlo.asin"); }},
      {"aten::acos", Rule::kFloating, [](const Expr& x) { return x.unary("chlo.acos"); }},
      {"aten::atan", Rule::kFloating, atan},
      {"aten::asinh", Rule::kFloating, [](const Expr& x) { return x.unary("chlo.asinh"); }},
      {"aten::acosh", Rule::kFloating, [](const Expr& x) { return x.unary("chlo.acosh"); }},
      {"aten::atanh", Rule::kFloating, [](const Expr& x) { return x.unary("chlo.atanh"); }},
      {"aten::sigmoid", Rule::kFloating, sigmoid},
      {"aten::sinc", Rule::kFloating, sinc},
      {"aten::erf", Rule::kFloating, [](const Expr& x) { return erf(x); }},
      {"aten::erfc", Rule::kAccurate, [](const Expr& x) { return erfc(x); }},
      {"aten::erfinv", Rule::kFloating, [](const Expr& x) { return x.unary("chlo.erf_inv"); }},
      {"aten::lgamma", Rule::kAccurate, [](const Expr& x) { return lgamma(x); }},
      {"aten::digamma", Rule::kFloating, digamma},
  };
  return rows;
}

}  // namespace

const std::vector<UnaryOp>& unary_functions() {
  static const std::vector<UnaryOp> rows = [] {
    std::vector<UnaryOp> all = plain_functions();
    for (const auto* more : {&bessel_functions(), &special_functions()})
      all.insert(all.end(), more->begin(), more->end());
    return all;
  }();
  return rows;
}

const OpTable& unary_ops() {
  static const OpTable table = [] {
    OpTable entries;
    for (const UnaryOp& op : unary_functions()) {
      const bool is_plain = op.name != "aten::round" && op.name != "aten::relu";
      if (is_plain) entries.push_back({op.name, lower_unary});
    }
    entries.push_back({"aten::relu", lower_relu});
    entries.push_back({"aten::round", lower_round});
    entries.push_back({"aten::nan_to_num", lower_nan_to_num});
    entries.push_back({"aten::logit", lower_logit, {"eps"}});
    entries.push_back({"aten::frexp", lower_frexp});
    return entries;
  }();
  return table;
}

}  // namespace torch_pjrt
