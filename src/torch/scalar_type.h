// c10::ScalarType <-> DType.
#pragma once

#include <c10/core/ScalarType.h>

#include "base/dtype.h"

namespace torch_pjrt {

// TypeError, naming the dtype, when XLA has no such type (quantized, complex32, bits, ...).
DType to_dtype(c10::ScalarType type);
bool has_dtype(c10::ScalarType type);
c10::ScalarType to_scalar_type(DType dtype);

}  // namespace torch_pjrt
