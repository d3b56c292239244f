// PyTorch's type promotion (c10::promoteTypes and at::native::result_type), on our dtypes.
#pragma once

#include <optional>

#include "base/dtype.h"
#include "lazy/signature.h"

namespace torch_pjrt {

// c10::promoteTypes: the smallest dtype that both convert to.
DType promote(DType a, DType b);
// The dtype in which an operator that only makes sense on floats (sqrt, mean, true division) computes: integers and
// bool become `default_dtype`, torch.get_default_dtype() being float32 unless the output type says otherwise.
DType to_floating(DType dtype, DType default_dtype = DType::kF32);
// The dtype in which sums over elements of `dtype` are kept (at::toOpMathType): float32 for the 8 and 16 bit floats.
DType accumulate_dtype(DType dtype);

// What a Python number is to type promotion: kPred, kS64, kF64 or kC128.
DType number_dtype(lazy::ScalarKind kind);

// at::native::ResultTypeState: tensors with dimensions win over 0-dim tensors, those over numbers, within a category
// (bool < integer < floating < complex).
class Promotion {
 public:
  void add_tensor(DType dtype);
  void add_zero_dim(DType dtype);
  // A Python number (or a wrapped one), by number_dtype().
  void add_number(DType dtype);
  DType result() const;

 private:
  std::optional<DType> tensors_, zero_dims_, numbers_;
};

}  // namespace torch_pjrt
