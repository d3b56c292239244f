// at::Tensor::to's element conversion.
#pragma once

#include "stablehlo/builder.h"

namespace torch_pjrt {

// Converts as ATen's CPU kernels do: floats truncate to integers, and wrap where the 8 and 16 bit integers cannot hold
// the truncated number; anything but zero is true; complex numbers lose their imaginary part; float64 reaches the
// 16-bit floats through float32.
stablehlo::Value cast(stablehlo::Builder& b, stablehlo::Value x, DType dtype);

}  // namespace torch_pjrt
