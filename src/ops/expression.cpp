#include "ops/expression.h"

#include <array>
#include <bit>

#include "base/error.h"

namespace torch_pjrt {

Expr select(const Expr& pred, const Expr& on_true, const Expr& on_false) {
  stablehlo::Builder& b = pred.builder();
  auto [x, y] = b.broadcast_pair(on_true.value(), on_false.value());
  const auto [p, z] = b.broadcast_pair(pred.value(), x);
  return {b, b.select(p, z, b.broadcast_to(y, z.dims()))};
}

Expr truncate(const Expr& x) {
  if (!is_floating(x.dtype())) return x;
  return select(x < 0.0, ceil(x), floor(x));
}

FloatFormat float_format(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {64, 11, 52};
    case DType::kF32:
      return {32, 8, 23};
    case DType::kF16:
      return {16, 5, 10};
    case DType::kBF16:
      return {16, 8, 7};
    case DType::kF8E4M3FN:
      return {8, 4, 3};
    case DType::kF8E5M2:
      return {8, 5, 2};
    default:
      TP_CHECK(false, "no float: ", hlo_name(dtype));
  }
}

Expr bits_of(const Expr& x) {
  static constexpr std::array kIntegers{DType::kS8, DType::kS16, DType::kS32, DType::kS64};
  const auto index = static_cast<size_t>(std::countr_zero(size_bytes(x.dtype())));
  return {x.builder(), x.builder().bitcast_convert(x, kIntegers.at(index))};
}

Expr signbit(const Expr& x) { return is_floating(x.dtype()) ? bits_of(x) < 0.0 : x < x.like(0.0); }

Expr copysign(const Expr& x, const Expr& y) {
  const Expr magnitude = abs(x);
  return select(signbit(y), -magnitude, magnitude);
}

Expr conj(const Expr& x) { return is_complex(x.dtype()) ? complex(real(x), -imag(x)) : x; }

Expr divide_exactly(const Expr& x, const Expr& y) {
  if (!is_floating(x.dtype()) || x.dims() == y.dims()) return x / y;
  // A divisor that depends on x is no broadcast; NaN divided by NaN is NaN.
  return x / select(is_nan(x), x, y);
}

Expr softplus(const Expr& x) { return maximum(x, 0.0) + log1p(exp(-abs(x))); }

}  // namespace torch_pjrt
