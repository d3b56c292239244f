// What losses share: the argument `reduction`.
#pragma once

#include "ops/reduction.h"

namespace torch_pjrt {

// at::Reduction::Reduction
enum LossReduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

Expr sum_all(const Expr& x);
// product(dims) as a divisor.
double count(const Dims& dims);
// The loss of each element, reduced as the argument `reduction` says and converted to `dtype`.
stablehlo::Values reduce_loss(const LoweringContext& ctx, const Expr& loss, DType dtype);

}  // namespace torch_pjrt
