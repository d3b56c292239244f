// Maximum over windows, with the flat position of each maximum in its plane.
#pragma once

#include "ops/pool_windows.h"

namespace torch_pjrt {

// Region over (value, index) pairs that follows ATen's CPU kernel: the last NaN, else the first maximum.
stablehlo::Values take_maximum(stablehlo::Builder& b, const stablehlo::Values& arguments);
// (maxima, s64 indices)
stablehlo::Values max_pool(stablehlo::Builder& b, const Pooling& pool, stablehlo::Value x);
// The gradient of the maximum over planes of `spatial` dimensions. `pool` is empty where windows are not regular.
stablehlo::Value max_pool_backward(stablehlo::Builder& b, const std::optional<Pooling>& pool, stablehlo::Value grad,
                                   stablehlo::Value indices, stablehlo::Value self, size_t spatial);

}  // namespace torch_pjrt
