// Sorting along a dimension with indices.
#pragma once

#include "stablehlo/builder.h"

namespace torch_pjrt {

struct Sorted {
  stablehlo::Value values, indices;  // indices as index_dtype of the dimension's size
};

// Stable; NaN counts as larger than every number. `x` has at least one dimension.
Sorted sort_along(stablehlo::Builder& b, stablehlo::Value x, int64_t dim, bool descending);

// The first `k` of sort_along, of equal elements the first ones.
Sorted top_along(stablehlo::Builder& b, stablehlo::Value x, int64_t dim, int64_t k, bool largest);

}  // namespace torch_pjrt
