// Depthwise convolution (every input channel has its own kernels) as an unrolled sum over the positions in the kernel.
// There is no contraction in it that would pay for a matrix product: XLA fuses the sum into one loop over the output.
#pragma once

#include "ops/pool_windows.h"

namespace torch_pjrt {

// input [N, C, *], weight [multiplier * C, 1, *] -> [N, multiplier * C, windows.output]
stablehlo::Value depthwise_correlate(stablehlo::Builder& b, const Pooling& windows, stablehlo::Value input,
                                     stablehlo::Value weight);
// Its gradient with respect to the input: [N, C, windows.input].
stablehlo::Value depthwise_input_gradient(stablehlo::Builder& b, const Pooling& windows, stablehlo::Value grad,
                                          stablehlo::Value weight, int64_t channels);

}  // namespace torch_pjrt
