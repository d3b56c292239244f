// Special functions that StableHLO and CHLO lack, as formulas and loops over all elements at once.
#pragma once

#include <vector>

#include "ops/elementwise.h"

namespace torch_pjrt {

// Rows for the table of unary operators.
const std::vector<UnaryOp>& bessel_functions();
const std::vector<UnaryOp>& special_functions();
// Rows for the table of binary operators.
const std::vector<BinaryOp>& polynomial_functions();

// Sum of coefficients[k] * T_k(t), with t in [-1, 1].
template <typename Coefficients>
Expr chebyshev(const Expr& t, const Coefficients& coefficients) {
  const Expr twice = t + t;
  Expr previous = t.like(0.0);
  Expr current = t.like(coefficients.back());
  for (size_t k = coefficients.size() - 1; k-- > 1;) {
    const Expr next = twice * current - previous + coefficients[k];
    previous = current;
    current = next;
  }
  return t * current - previous + coefficients[0];
}

// A scalar pred: true for any element.
Expr any(const Expr& pred);
// Sum over k >= 0 of (q + k)^-x.
Expr hurwitz_zeta(const Expr& x, const Expr& q);
// Regularized incomplete gamma functions, lower and upper.
Expr igamma(const Expr& a, const Expr& x);
Expr igammac(const Expr& a, const Expr& x);

}  // namespace torch_pjrt
