// Inclusive scans (prefix combinations) along one dimension.
#pragma once

#include "stablehlo/builder.h"

namespace torch_pjrt {

// Element i of the result combines elements 0..i of `xs` along `dim`. `combine` gets [lhs..., rhs...], must be
// associative, commutative and work on values of any shape; `identity` holds its neutral scalars. Work is O(n) for a
// dimension of n.
stablehlo::Values scan(stablehlo::Builder& b, const stablehlo::Values& xs, const stablehlo::Values& identity,
                       int64_t dim, const stablehlo::Region& combine);

// Running sum along `dim` in `x`'s dtype.
stablehlo::Value cumulative_sum(stablehlo::Builder& b, stablehlo::Value x, int64_t dim);

}  // namespace torch_pjrt
