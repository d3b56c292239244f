// Types as a part of structural hashes.
#pragma once

#include "base/hash.h"
#include "base/tensor_type.h"

namespace torch_pjrt {

inline void mix(Hash128& hash, const TensorType& type) {
  hash.mix(static_cast<uint64_t>(type.dtype));
  hash.mix_range(type.dims.begin(), type.dims.end());
}

}  // namespace torch_pjrt
