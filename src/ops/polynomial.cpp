// Orthogonal polynomials of x with a degree for each element, by their three-term recurrences.
#include "ops/special.h"

namespace torch_pjrt {
namespace {

using stablehlo::Values;

// P_{k+1} from k, x, P_k and P_{k-1}; k is a scalar.
using Recurrence = Expr (*)(const Expr& k, const Expr& x, const Expr& current, const Expr& previous);

// `first` is P_1; P_0 is 1, and a negative degree gives 0.
Expr polynomial(const Expr& x, const Expr& degree, const Expr& first, Recurrence recurrence) {
  stablehlo::Builder& b = x.builder();
  const auto [x_all, n_all] = b.broadcast_pair(x.value(), truncate(degree).value());
  const Expr n(b, n_all);
  const Expr p1(b, b.broadcast_to(first, n.dims()));
  const Expr initial = select(n == 0.0, 1.0, select(n == 1.0, p1, 0.0));
  const Values state = b.while_loop(
      {b.constant(1.0, x.dtype()), x_all, n_all, p1.like(1.0), p1, initial},
      [&](const Values& v) { return Values{any(Expr(b, v[2]) > Expr(b, v[0]))}; },
      [&](const Values& v) {
        const Expr k(b, v[0]), argument(b, v[1]), degrees(b, v[2]), previous(b, v[3]), current(b, v[4]),
            result(b, v[5]);
        const Expr next = recurrence(k, argument, current, previous);
        const Expr next_k = k + 1.0;
        return Values{next_k, argument, degrees, current, next, select(degrees == next_k, next, result)};
      });
  return {b, state[5]};
}

Expr chebyshev_step(const Expr& k, const Expr& x, const Expr& current, const Expr& previous) {
  return 2.0 * x * current - previous;
}
Expr hermite_h_step(const Expr& k, const Expr& x, const Expr& current, const Expr& previous) {
  return 2.0 * (x * current - k * previous);
}
Expr hermite_he_step(const Expr& k, const Expr& x, const Expr& current, const Expr& previous) {
  return x * current - k * previous;
}
Expr laguerre_step(const Expr& k, const Expr& x, const Expr& current, const Expr& previous) {
  return ((2.0 * k + 1.0 - x) * current - k * previous) / (k + 1.0);
}
Expr legendre_step(const Expr& k, const Expr& x, const Expr& current, const Expr& previous) {
  return ((2.0 * k + 1.0) * x * current - k * previous) / (k + 1.0);
}

Expr chebyshev_t(const Expr& x, const Expr& n) { return polynomial(x, n, x, chebyshev_step); }
Expr chebyshev_u(const Expr& x, const Expr& n) { return polynomial(x, n, 2.0 * x, chebyshev_step); }
Expr chebyshev_v(const Expr& x, const Expr& n) { return polynomial(x, n, 2.0 * x - 1.0, chebyshev_step); }
Expr chebyshev_w(const Expr& x, const Expr& n) { return polynomial(x, n, 2.0 * x + 1.0, chebyshev_step); }
Expr shifted(const Expr& x) { return 2.0 * x - 1.0; }

}  // namespace

const std::vector<BinaryOp>& polynomial_functions() {
  static const std::vector<BinaryOp> rows = {
      {"aten::special_chebyshev_polynomial_t", Rule::kFloating, chebyshev_t, "x", "n"},
      {"aten::special_chebyshev_polynomial_u", Rule::kFloating, chebyshev_u, "x", "n"},
      {"aten::special_chebyshev_polynomial_v", Rule::kFloating, chebyshev_v, "x", "n"},
      {"aten::special_chebyshev_polynomial_w", Rule::kFloating, chebyshev_w, "x", "n"},
      {"aten::special_shifted_chebyshev_polynomial_t", Rule::kFloating,
       [](const Expr& x, const Expr& n) { return chebyshev_t(shifted(x), n); }, "x", "n"},
      {"aten::special_shifted_chebyshev_polynomial_u", Rule::kFloating,
       [](const Expr& x, const Expr& n) { return chebyshev_u(shifted(x), n); }, "x", "n"},
      {"aten::special_shifted_chebyshev_polynomial_v", Rule::kFloating,
       [](const Expr& x, const Expr& n) { return chebyshev_v(shifted(x), n); }, "x", "n"},
      {"aten::special_shifted_chebyshev_polynomial_w", Rule::kFloating,
       [](const Expr& x, const Expr& n) { return chebyshev_w(shifted(x), n); }, "x", "n"},
      {"aten::special_hermite_polynomial_h", Rule::kFloating,
       [](const Expr& x, const Expr& n) { return polynomial(x, n, 2.0 * x, hermite_h_step); }, "x", "n"},
      {"aten::special_hermite_polynomial_he", Rule::kFloating,
       [](const Expr& x, const Expr& n) { return polynomial(x, n, x, hermite_he_step); }, "x", "n"},
      {"aten::special_laguerre_polynomial_l", Rule::kFloating,
       [](const Expr& x, const Expr& n) { return polynomial(x, n, 1.0 - x, laguerre_step); }, "x", "n"},
      {"aten::special_legendre_polynomial_p", Rule::kFloating,
       [](const Expr& x, const Expr& n) { return polynomial(x, n, x, legendre_step); }, "x", "n"},
  };
  return rows;
}

}  // namespace torch_pjrt
