// Strides of results where PyTorch's CPU kernel decides them and no meta kernel tells.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <optional>
#include <string>

#include "base/tensor_type.h"

namespace torch_pjrt {

// The strides that eager PyTorch on CPU gives to result `output` of an operator that is called with `arguments`, or
// nullopt when what the meta kernel says holds. `sizes` are the result's.
std::optional<Dims> cpu_strides(const std::string& name, c10::ArrayRef<c10::IValue> arguments, size_t output,
                                const Dims& sizes);

}  // namespace torch_pjrt
