// Formulas over program values: `x * logistic(x) + 1.0` instead of nested builder calls.
//
// Both operands of an operator have one dtype and broadcast by PyTorch's rule; a double becomes a constant of the other
// operand's dtype. Nothing converts dtypes by itself.
#pragma once

#include <string_view>

#include "stablehlo/builder.h"

namespace torch_pjrt {

class Expr {
 public:
  Expr(stablehlo::Builder& builder, stablehlo::Value value) : builder_(&builder), value_(value) {}

  stablehlo::Builder& builder() const { return *builder_; }
  stablehlo::Value value() const { return value_; }
  operator stablehlo::Value() const { return value_; }
  DType dtype() const { return value_.dtype(); }
  const Dims& dims() const { return value_.dims(); }

  // A constant with this value's dtype and dims.
  Expr like(double constant) const { return {*builder_, builder_->splat_like(constant, value_)}; }
  Expr convert(DType dtype) const { return {*builder_, builder_->convert(value_, dtype)}; }
  // An elementwise operation by StableHLO or CHLO mnemonic.
  Expr unary(std::string_view mnemonic) const { return {*builder_, builder_->unary(mnemonic, value_)}; }
  Expr binary(std::string_view mnemonic, const Expr& other) const {
    const auto [x, y] = builder_->broadcast_pair(value_, other.value_);
    return {*builder_, builder_->binary(mnemonic, x, y)};
  }
  Expr compare(stablehlo::Comparison direction, const Expr& other) const {
    const auto [x, y] = builder_->broadcast_pair(value_, other.value_);
    return {*builder_, builder_->compare(direction, x, y)};
  }

 private:
  stablehlo::Builder* builder_;
  stablehlo::Value value_;
};

inline Expr operator+(const Expr& x, const Expr& y) { return x.binary("stablehlo.add", y); }
inline Expr operator-(const Expr& x, const Expr& y) { return x.binary("stablehlo.subtract", y); }
inline Expr operator*(const Expr& x, const Expr& y) { return x.binary("stablehlo.multiply", y); }
inline Expr operator/(const Expr& x, const Expr& y) { return x.binary("stablehlo.divide", y); }
inline Expr operator+(const Expr& x, double y) { return x + x.like(y); }
inline Expr operator-(const Expr& x, double y) { return x - x.like(y); }
inline Expr operator*(const Expr& x, double y) { return x * x.like(y); }
inline Expr operator/(const Expr& x, double y) { return x / x.like(y); }
inline Expr operator+(double x, const Expr& y) { return y.like(x) + y; }
inline Expr operator-(double x, const Expr& y) { return y.like(x) - y; }
inline Expr operator*(double x, const Expr& y) { return y.like(x) * y; }
inline Expr operator/(double x, const Expr& y) { return y.like(x) / y; }
inline Expr operator-(const Expr& x) { return x.unary("stablehlo.negate"); }

inline Expr operator==(const Expr& x, const Expr& y) { return x.compare(stablehlo::Comparison::kEq, y); }
inline Expr operator!=(const Expr& x, const Expr& y) { return x.compare(stablehlo::Comparison::kNe, y); }
inline Expr operator<(const Expr& x, const Expr& y) { return x.compare(stablehlo::Comparison::kLt, y); }
inline Expr operator<=(const Expr& x, const Expr& y) { return x.compare(stablehlo::Comparison::kLe, y); }
inline Expr operator>(const Expr& x, const Expr& y) { return x.compare(stablehlo::Comparison::kGt, y); }
inline Expr operator>=(const Expr& x, const Expr& y) { return x.compare(stablehlo::Comparison::kGe, y); }
inline Expr operator==(const Expr& x, double y) { return x == x.like(y); }
inline Expr operator!=(const Expr& x, double y) { return x != x.like(y); }
inline Expr operator<(const Expr& x, double y) { return x < x.like(y); }
inline Expr operator<=(const Expr& x, double y) { return x <= x.like(y); }
inline Expr operator>(const Expr& x, double y) { return x > x.like(y); }
inline Expr operator>=(const Expr& x, double y) { return x >= x.like(y); }

// Bitwise on integers, logical on pred.
inline Expr operator&(const Expr& x, const Expr& y) { return x.binary("stablehlo.and", y); }
inline Expr operator|(const Expr& x, const Expr& y) { return x.binary("stablehlo.or", y); }
inline Expr operator^(const Expr& x, const Expr& y) { return x.binary("stablehlo.xor", y); }
inline Expr operator~(const Expr& x) { return x.unary("stablehlo.not"); }

inline Expr abs(const Expr& x) { return x.unary("stablehlo.abs"); }
inline Expr exp(const Expr& x) { return x.unary("stablehlo.exponential"); }
inline Expr expm1(const Expr& x) { return x.unary("stablehlo.exponential_minus_one"); }
inline Expr log(const Expr& x) { return x.unary("stablehlo.log"); }
inline Expr log1p(const Expr& x) { return x.unary("stablehlo.log_plus_one"); }
inline Expr sqrt(const Expr& x) { return x.unary("stablehlo.sqrt"); }
inline Expr rsqrt(const Expr& x) { return x.unary("stablehlo.rsqrt"); }
inline Expr tanh(const Expr& x) { return x.unary("stablehlo.tanh"); }
inline Expr logistic(const Expr& x) { return x.unary("stablehlo.logistic"); }
inline Expr floor(const Expr& x) { return x.unary("stablehlo.floor"); }
inline Expr ceil(const Expr& x) { return x.unary("stablehlo.ceil"); }
inline Expr sin(const Expr& x) { return x.unary("stablehlo.sine"); }
inline Expr cos(const Expr& x) { return x.unary("stablehlo.cosine"); }
inline Expr real(const Expr& x) { return x.unary("stablehlo.real"); }
inline Expr imag(const Expr& x) { return x.unary("stablehlo.imag"); }
inline Expr erf(const Expr& x) { return x.unary("chlo.erf"); }
inline Expr erfc(const Expr& x) { return x.unary("chlo.erfc"); }
inline Expr lgamma(const Expr& x) { return x.unary("chlo.lgamma"); }
inline Expr is_nan(const Expr& x) { return x != x; }

// NaN in either operand gives NaN.
inline Expr maximum(const Expr& x, const Expr& y) { return x.binary("stablehlo.maximum", y); }
inline Expr minimum(const Expr& x, const Expr& y) { return x.binary("stablehlo.minimum", y); }
inline Expr maximum(const Expr& x, double y) { return maximum(x, x.like(y)); }
inline Expr minimum(const Expr& x, double y) { return minimum(x, x.like(y)); }
inline Expr power(const Expr& x, const Expr& y) { return x.binary("stablehlo.power", y); }
inline Expr atan2(const Expr& y, const Expr& x) { return y.binary("stablehlo.atan2", x); }
// C's fmod and %: the sign of the dividend.
inline Expr fmod(const Expr& x, const Expr& y) { return x.binary("stablehlo.remainder", y); }
inline Expr complex(const Expr& real, const Expr& imag) {
  const auto [x, y] = real.builder().broadcast_pair(real.value(), imag.value());
  return {real.builder(), real.builder().complex(x, y)};
}

// All three broadcast together.
Expr select(const Expr& pred, const Expr& on_true, const Expr& on_false);
inline Expr select(const Expr& pred, const Expr& on_true, double on_false) {
  return select(pred, on_true, on_true.like(on_false));
}
inline Expr select(const Expr& pred, double on_true, const Expr& on_false) {
  return select(pred, on_false.like(on_true), on_false);
}
// Rounds to the integer nearer to zero; keeps the sign of a zero.
Expr truncate(const Expr& x);
// `x` with the sign bit of `y`, which may be a zero or a NaN. Both floating.
Expr copysign(const Expr& x, const Expr& y);
// How a float dtype lays out its bits, below the sign bit.
struct FloatFormat {
  int bits;
  int exponent_bits;
  int fraction_bits;
};
FloatFormat float_format(DType dtype);
// The bits of a float as a signed integer of the same width.
Expr bits_of(const Expr& x);
// pred: the sign bit is set. Negative zero and negative NaN count.
Expr signbit(const Expr& x);
Expr conj(const Expr& x);
// x / y rounded as IEEE 754 says, which `/` is not where y is smaller than x: XLA multiplies by a reciprocal there.
Expr divide_exactly(const Expr& x, const Expr& y);
// log(1 + exp(x)) without overflow.
Expr softplus(const Expr& x);

}  // namespace torch_pjrt
