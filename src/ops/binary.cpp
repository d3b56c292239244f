// Elementwise operators of two operands, with PyTorch's type promotion.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/special.h"
#include "ops/value_check.h"

namespace torch_pjrt {
namespace {

using stablehlo::Comparison;
using stablehlo::Value;
using stablehlo::Values;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// c10::div_floor_floating: the quotient from fmod, so that it is consistent with the remainder.
Expr floor_divide_floating(const Expr& x, const Expr& y) {
  const Expr mod = fmod(x, y);
  const Expr exact = divide_exactly(x - mod, y);
  const Expr wrong_side = (mod != 0.0) & ((y < 0.0) ^ (mod < 0.0));
  const Expr quotient = select(wrong_side, exact - 1.0, exact);
  const Expr floored = floor(quotient);
  const Expr nearest = select(quotient - floored > 0.5, floored + 1.0, floored);
  const Expr result = select(quotient != 0.0, nearest, copysign(quotient.like(0.0), divide_exactly(x, y)));
  return select(y == y.like(0.0), divide_exactly(x, y), result);
}

Expr floor_divide(const Expr& x, const Expr& y) {
  if (is_floating(x.dtype())) return floor_divide_floating(x, y);
  const Expr quotient = x / y;
  if (!is_signed(x.dtype())) return quotient;
  const Expr inexact = quotient * y != x;
  return select(inexact & ((x < 0.0) ^ (y < 0.0)), quotient - 1.0, quotient);
}

Expr truncated_divide(const Expr& x, const Expr& y) { return truncate(divide_exactly(x, y)); }

// Python's %: the sign of the divisor.
Expr remainder(const Expr& x, const Expr& y) {
  const Expr mod = fmod(x, y);
  if (!is_signed(x.dtype())) return mod;
  return select((mod != 0.0) & ((y < 0.0) ^ (mod < 0.0)), mod + y, mod);
}

Expr maximum_number(const Expr& x, const Expr& y) {
  if (!is_floating(x.dtype())) return maximum(x, y);
  return select(is_nan(x), y, select(is_nan(y), x, maximum(x, y)));
}

Expr minimum_number(const Expr& x, const Expr& y) {
  if (!is_floating(x.dtype())) return minimum(x, y);
  return select(is_nan(x), y, select(is_nan(y), x, minimum(x, y)));
}

// sqrt(x^2 + y^2) without overflow or underflow in between.
Expr hypot(const Expr& x, const Expr& y) {
  const Expr a = abs(x);
  const Expr b = abs(y);
  const Expr larger = maximum(a, b);
  const Expr ratio = minimum(a, b) / larger;
  const Expr length = larger * sqrt(1.0 + ratio * ratio);
  const Expr any_infinite = (a == kInfinity) | (b == kInfinity);
  return select(any_infinite, kInfinity, select(larger == 0.0, 0.0, length));
}

// ATen's kernel adds the smaller exponential to the larger; equal infinities stay.
Expr log_add_exp(const Expr& x, const Expr& y, double base) {
  const double scale = std::log(base);
  const Expr larger = maximum(x, y);
  const Expr distance = abs(x - y);
  const Expr sum = larger + log1p(exp(distance * -scale)) / scale;
  return select((x == y) & (abs(x) == kInfinity), x, sum);
}

Expr xlogy_with(const Expr& x, const Expr& y, const Expr& log_y) {
  return select(is_nan(y), y, select(x == 0.0, 0.0, x * log_y));
}

Expr heaviside(const Expr& x, const Expr& values) {
  const Expr one = x.dtype() == DType::kPred ? x : select(x > 0.0, 1.0, x.like(0.0));
  return select(x == x.like(0.0), values, one);
}

// Shifting by a negative number or by the width or more gives 0 (or -1), as ATen defines.
Expr shift(const Expr& x, const Expr& y, std::string_view mnemonic, double beyond) {
  const double bits = static_cast<double>(size_bytes(x.dtype())) * 8.0;
  const Expr in_range = (y >= 0.0) & (y < bits);
  const Expr shifted = x.binary(mnemonic, select(in_range, y, beyond));
  return mnemonic == "stablehlo.shift_left" ? select(in_range, shifted, 0.0) : shifted;
}

Expr shift_left(const Expr& x, const Expr& y) {
  if (is_floating(x.dtype())) return x * power(y.like(2.0), y);
  return shift(x, y, "stablehlo.shift_left", 0.0);
}

Expr shift_right(const Expr& x, const Expr& y) {
  if (is_floating(x.dtype())) return x / power(y.like(2.0), y);
  const double last = static_cast<double>(size_bytes(x.dtype())) * 8.0 - 1.0;
  if (is_signed(x.dtype())) return shift(x, y, "stablehlo.shift_right_arithmetic", last);
  const double bits = last + 1.0;
  const Expr in_range = y < bits;
  return select(in_range, x.binary("stablehlo.shift_right_logical", select(in_range, y, 0.0)), 0.0);
}

// The next number after x towards y. Steps and comparisons are of the bits, as integers in the order of the numbers:
// float arithmetic takes a subnormal number for zero on many devices.
Expr next_after(const Expr& x_any, const Expr& y_any) {
  stablehlo::Builder& b = x_any.builder();
  const auto [from, to] = b.broadcast_pair(x_any.value(), y_any.value());
  const Expr x(b, from);
  const Expr y(b, to);
  const auto width = float_format(x.dtype()).bits;
  const Expr sign_bit(b, b.splat(std::numeric_limits<int64_t>::min() >> (64 - width), bits_of(x).value().type()));
  const auto order = [&](const Expr& bits) { return select(bits < 0.0, -(bits ^ sign_bit), bits); };
  const Expr start = order(bits_of(x));
  const Expr goal = order(bits_of(y));
  const Expr next = select(start < goal, start + 1.0, start - 1.0);
  const Expr is_negative = (next < 0.0) | ((next == 0.0) & signbit(x));
  const Expr next_bits = select(is_negative, abs(next) | sign_bit, next);
  const Expr stepped(b, b.bitcast_convert(next_bits, x.dtype()));
  return select(is_nan(x) | is_nan(y), x + y, select(start == goal, y, stepped));
}

// Euclid's algorithm on all elements at once.
Expr gcd(const Expr& x, const Expr& y) {
  stablehlo::Builder& b = x.builder();
  const auto [m, n] = b.broadcast_pair(x.value(), y.value());
  const auto magnitude = [&](Value v) { return is_signed(v.dtype()) ? b.abs(v) : v; };
  const Values result = b.while_loop(
      {magnitude(m), magnitude(n)}, [&](const Values& state) { return Values{any(Expr(b, state[1]) != 0.0)}; },
      [&](const Values& state) {
        const Expr a(b, state[0]);
        const Expr rest(b, state[1]);
        const Expr done = rest == 0.0;
        const Expr mod = fmod(a, select(done, 1.0, rest));
        return Values{select(done, a, rest), select(done, 0.0, mod)};
      });
  return {b, magnitude(result[0])};
}

Expr lcm(const Expr& x, const Expr& y) {
  // C computes in int, and cuts off afterwards.
  if (is_signed(x.dtype()) && size_bytes(x.dtype()) < 4) {
    return lcm(x.convert(DType::kS32), y.convert(DType::kS32)).convert(x.dtype());
  }
  const Expr divisor = gcd(x, y);
  const Expr product = x / select(divisor == 0.0, 1.0, divisor) * y;
  const Expr positive = is_signed(x.dtype()) ? abs(product) : product;
  return select(divisor == 0.0, 0.0, positive);
}

Expr as_logical(const Expr& x) { return x != x.like(0.0); }

// Numbers, and scalars that lie on the CPU, were looked at when the call was made.
void check_divisor(const LoweringContext& ctx, const Expr& y) {
  const auto& names = ctx.signature().schema->argument_names;
  const auto at = static_cast<size_t>(std::find(names.begin(), names.end(), "other") - names.begin());
  const lazy::Argument& argument = ctx.signature().arguments.at(at);
  const bool is_on_device =
      argument.kind == lazy::Argument::Kind::kTensor && argument.tensors[0].source == lazy::TensorRef::Source::kOperand;
  if (is_integral(y.dtype()) && is_on_device) {
    require(y.builder(), (y != y.like(0.0)).value(), "ZeroDivisionError");
  }
}

bool divides(std::string_view name) {
  return name == "aten::floor_divide" || name == "aten::remainder" || name == "aten::fmod";
}

Values lower_binary(LoweringContext& ctx) {
  const BinaryOp& op = binary_function(ctx.name());
  const DType result_type = ctx.result_type({op.lhs, op.rhs});
  const ElementwiseTypes types =
      elementwise_types(op.rule, result_type, default_floating(ctx), is_mixed(ctx, {op.lhs, op.rhs}, result_type));
  // Only `+`, `-`, `*` and `/` take a number unrounded: here ATen rounds it to the 16-bit type of the tensor.
  const auto read = [&](std::string_view name) {
    return Expr(ctx.b, ctx.operand(name, types.result)).convert(types.compute);
  };
  const Expr x = read(op.lhs), y = read(op.rhs);
  if (divides(ctx.name())) check_divisor(ctx, y);
  return {finish(op.function(x, y), types)};
}

// add, sub and rsub: `alpha` scales the subtrahend or the second summand.
Values lower_add(LoweringContext& ctx) {
  const DType dtype = ctx.result_type({"self", "other"});
  const bool scaled = ctx.has("alpha") && ctx.static_number("alpha") != 1.0;
  const bool mixed = scaled || is_mixed(ctx, {"self", "other"}, dtype);
  const ElementwiseTypes types = elementwise_types(Rule::kArithmetic, dtype, dtype, mixed);
  Expr x(ctx.b, ctx.operand("self", types.compute));
  Expr y(ctx.b, ctx.operand("other", types.compute));
  const bool reversed = ctx.name() == "aten::rsub";
  if (scaled) {
    Expr& addend = reversed ? x : y;
    addend = multiply_any(addend, Expr(ctx.b, ctx.operand("alpha", types.compute)));
  }
  if (ctx.name() == "aten::add") return {finish(add_any(x, y), types)};
  return {finish(reversed ? y - x : x - y, types)};
}

// A bool factor selects between x and x * 0: XLA would take x * convert(mask) for a choice between x and 0, which loses
// the NaN of infinity times false.
Values lower_mul(LoweringContext& ctx) {
  const DType dtype = ctx.result_type({"self", "other"});
  const bool keeps_nan = !is_integral(dtype) && dtype != DType::kPred;
  const bool is_masked = keeps_nan && ctx.tensor_dtype("other") == DType::kPred;
  const bool is_mask = keeps_nan && ctx.tensor_dtype("self") == DType::kPred;
  const bool mixed = !is_masked && !is_mask && is_mixed(ctx, {"self", "other"}, dtype);
  const ElementwiseTypes types = elementwise_types(Rule::kArithmetic, dtype, dtype, mixed);
  if (is_mask) {
    const Expr y(ctx.b, ctx.operand("other", types.compute));
    return {select(Expr(ctx.b, ctx.tensor("self")), y, y * 0.0)};
  }
  const Expr x(ctx.b, ctx.operand("self", types.compute));
  if (is_masked) return {select(Expr(ctx.b, ctx.tensor("other")), x, x * 0.0)};
  return {finish(multiply_any(x, Expr(ctx.b, ctx.operand("other", types.compute))), types)};
}

Values lower_div(LoweringContext& ctx) {
  const std::string mode = ctx.string("rounding_mode");
  const DType dtype = ctx.result_type({"self", "other"});
  const DType result = mode.empty() ? to_floating(dtype, default_floating(ctx)) : dtype;
  // ATen rounds the quotient before truncating it, but floors by way of float32.
  const bool in_dtype = mode != "floor" && !is_mixed(ctx, {"self", "other"}, result);
  const ElementwiseTypes types = {in_dtype ? result : wide(result), result};
  const Expr x(ctx.b, ctx.operand("self", types.compute));
  const Expr y(ctx.b, ctx.operand("other", types.compute));
  if (mode.empty()) return {finish(divide_exactly(x, y), types)};
  check_divisor(ctx, y);
  return {finish(mode == "floor" ? floor_divide(x, y) : truncated_divide(x, y), types)};
}

Values lower_logical(LoweringContext& ctx) {
  const auto read = [&](std::string_view name) { return as_logical(Expr(ctx.b, ctx.tensor(name))); };
  const Expr x = read("self");
  const Expr y = read("other");
  if (ctx.name() == "aten::logical_and") return {x & y};
  return {ctx.name() == "aten::logical_or" ? x | y : x ^ y};
}

// By squaring, so that overflow wraps for any exponent (XLA's own power takes its last six bits); none is negative.
Expr integer_power(const Expr& x, const Expr& exponent) {
  stablehlo::Builder& b = x.builder();
  const auto [base, bits] = b.broadcast_pair(x.value(), exponent.value());
  const Values state = b.while_loop(
      {base, bits, b.splat_like(1.0, base)}, [&](const Values& v) { return Values{any(Expr(b, v[1]) != 0.0)}; },
      [&](const Values& v) {
        const Expr square(b, v[0]), rest(b, v[1]), product(b, v[2]);
        const Expr is_odd = (rest & rest.like(1.0)) != 0.0;
        return Values{square * square, rest.binary("stablehlo.shift_right_logical", rest.like(1.0)),
                      select(is_odd, product * square, product)};
      });
  return {b, state[2]};
}

Values lower_pow(LoweringContext& ctx) {
  const DType dtype = ctx.result_type({"self", "exponent"});
  if (dtype == DType::kPred) ctx.decline("bool base and exponent");
  if (is_integral(dtype) && ctx.static_number("exponent").value_or(0.0) < 0.0)
    ctx.decline("negative power of integers");
  const ElementwiseTypes types = elementwise_types(Rule::kWide, dtype, dtype);
  const auto read = [&](std::string_view name) { return Expr(ctx.b, ctx.operand(name, dtype)).convert(types.compute); };
  const auto exponent = ctx.static_number("exponent");
  if (exponent) return {finish(power_static(read("self"), *exponent, dtype), types)};
  return {finish(power_dynamic(read("self"), read("exponent")), types)};
}

}  // namespace

Expr add_any(const Expr& x, const Expr& y) { return x.dtype() == DType::kPred ? x | y : x + y; }
Expr multiply_any(const Expr& x, const Expr& y) { return x.dtype() == DType::kPred ? x & y : x * y; }

Expr power_static(const Expr& x, double exponent, DType type) {
  if (exponent == 0.0) return x.like(1.0);
  if (exponent == 1.0) return x;
  if (exponent == 2.0) return x * x;
  if (exponent == 3.0) return x * x * x;
  if (is_floating(x.dtype()) || is_complex(x.dtype())) {
    // ATen takes roots except in float16; they differ from powers at -inf and -0.
    if (exponent == 0.5 && type != DType::kF16) return sqrt(x);
    if (exponent == -0.5 && type != DType::kF16) return x.like(1.0) / sqrt(x);
    if (exponent == -1.0) return x.like(1.0) / x;
    if (exponent == -2.0) return x.like(1.0) / (x * x);
  }
  if (!is_integral(x.dtype()) || exponent < 0.0) {
    stablehlo::Builder& b = x.builder();
    return power_dynamic(x, Expr(b, b.convert(b.constant(exponent, type), x.dtype())));
  }
  Expr square = x;
  Expr product = x.like(1.0);
  for (auto bits = static_cast<uint64_t>(exponent); bits != 0; bits >>= 1) {
    if ((bits & 1) != 0) product = product * square;
    square = square * square;
  }
  return product;
}

Expr power_dynamic(const Expr& x, const Expr& exponent) {
  if (is_floating(x.dtype()) || is_complex(x.dtype())) return power(x, exponent);
  if (!is_signed(x.dtype())) return integer_power(x, exponent);
  const Expr positive = integer_power(x, maximum(exponent, 0.0));
  const Expr is_odd = (exponent & exponent.like(1.0)) != 0.0;
  const Expr of_minus_one = select(is_odd, -1.0, exponent.like(1.0));
  const Expr negative = select(x == 1.0, 1.0, select(x == -1.0, of_minus_one, 0.0));
  return select(exponent < 0.0, negative, positive);
}

namespace {

const std::vector<BinaryOp>& plain_functions() {
  static const std::vector<BinaryOp> rows = {
      {"aten::floor_divide", Rule::kWide, floor_divide},
      {"aten::remainder", Rule::kWide, remainder},
      {"aten::fmod", Rule::kWide, fmod},
      {"aten::atan2", Rule::kFloating, atan2},
      {"aten::copysign", Rule::kFloating, copysign},
      {"aten::hypot", Rule::kWide, hypot},
      {"aten::nextafter", Rule::kSame, next_after},
      {"aten::logaddexp", Rule::kWide, [](const Expr& x, const Expr& y) { return log_add_exp(x, y, std::numbers::e); }},
      {"aten::logaddexp2", Rule::kWide, [](const Expr& x, const Expr& y) { return log_add_exp(x, y, 2.0); }},
      {"aten::xlogy", Rule::kFloating, [](const Expr& x, const Expr& y) { return xlogy_with(x, y, log(y)); }},
      {"aten::special_xlog1py", Rule::kFloating,
       [](const Expr& x, const Expr& y) { return xlogy_with(x, y, log1p(y)); }},
      {"aten::special_zeta", Rule::kFloating, hurwitz_zeta},
      {"aten::igamma", Rule::kWide, igamma},
      {"aten::igammac", Rule::kWide, igammac},
      {"aten::heaviside", Rule::kSame, heaviside, "self", "values"},
      {"aten::maximum", Rule::kSame, [](const Expr& x, const Expr& y) { return maximum(x, y); }},
      {"aten::minimum", Rule::kSame, [](const Expr& x, const Expr& y) { return minimum(x, y); }},
      {"aten::fmax", Rule::kSame, maximum_number},
      {"aten::fmin", Rule::kSame, minimum_number},
      {"aten::gcd", Rule::kSame, gcd},
      {"aten::lcm", Rule::kSame, lcm},
      {"aten::bitwise_and", Rule::kSame, [](const Expr& x, const Expr& y) { return x & y; }},
      {"aten::bitwise_or", Rule::kSame, [](const Expr& x, const Expr& y) { return x | y; }},
      {"aten::bitwise_xor", Rule::kSame, [](const Expr& x, const Expr& y) { return x ^ y; }},
      {"aten::bitwise_left_shift", Rule::kSame, shift_left},
      {"aten::bitwise_right_shift", Rule::kSame, shift_right},
      {"aten::__lshift__", Rule::kSame, shift_left},
      {"aten::__rshift__", Rule::kSame, shift_right},
      {"aten::eq", Rule::kSame, [](const Expr& x, const Expr& y) { return x == y; }},
      {"aten::ne", Rule::kSame, [](const Expr& x, const Expr& y) { return x != y; }},
      {"aten::lt", Rule::kSame, [](const Expr& x, const Expr& y) { return x < y; }},
      {"aten::le", Rule::kSame, [](const Expr& x, const Expr& y) { return x <= y; }},
      {"aten::gt", Rule::kSame, [](const Expr& x, const Expr& y) { return x > y; }},
      {"aten::ge", Rule::kSame, [](const Expr& x, const Expr& y) { return x >= y; }},
      {"aten::complex", Rule::kSame, complex, "real", "imag"},
      {"aten::polar", Rule::kSame, [](const Expr& x, const Expr& y) { return complex(x * cos(y), x * sin(y)); }, "abs",
       "angle"},
  };
  return rows;
}

}  // namespace

const std::vector<BinaryOp>& binary_functions() {
  static const std::vector<BinaryOp> rows = [] {
    std::vector<BinaryOp> all = plain_functions();
    const auto& more = polynomial_functions();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return rows;
}

const OpTable& binary_ops() {
  static const OpTable table = [] {
    OpTable entries;
    for (const BinaryOp& op : binary_functions()) entries.push_back({op.name, lower_binary});
    entries.push_back({"aten::mul", lower_mul});
    for (const std::string_view name : {"aten::add", "aten::sub", "aten::rsub"}) {
      entries.push_back({.name = name, .lower = lower_add, .constant_defaults = {"alpha"}});
    }
    for (const std::string_view name : {"aten::logical_and", "aten::logical_or", "aten::logical_xor"}) {
      entries.push_back({name, lower_logical});
    }
    entries.push_back({"aten::div", lower_div});
    entries.push_back({"aten::pow", lower_pow, {"exponent"}});
    return entries;
  }();
  return table;
}

}  // namespace torch_pjrt
