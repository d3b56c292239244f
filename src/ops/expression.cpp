#include "ops/expression.h"

#include <limits>

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

namespace {

DType signed_integer(DType floating) {
  switch (size_bytes(floating)) {
    case 1:
      return DType::kS8;
    case 2:
      return DType::kS16;
    case 4:
      return DType::kS32;
    default:
      return DType::kS64;
  }
}

}  // namespace

Expr signbit(const Expr& x) {
  stablehlo::Builder& b = x.builder();
  if (!is_floating(x.dtype())) return x < x.like(0.0);
  const Expr bits(b, b.bitcast_convert(x.value(), signed_integer(x.dtype())));
  return bits < 0.0;
}

Expr copysign(const Expr& x, const Expr& y) {
  const Expr magnitude = abs(x);
  return select(signbit(y), -magnitude, magnitude);
}

Expr conj(const Expr& x) { return is_complex(x.dtype()) ? complex(real(x), -imag(x)) : x; }

Expr softplus(const Expr& x) { return maximum(x, 0.0) + log1p(exp(-abs(x))); }

}  // namespace torch_pjrt
