// The type of a device value: element type and static sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace torch_pjrt {

using Dims = std::vector<int64_t>;

struct TensorType {
  DType dtype = DType::kF32;
  Dims dims;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t numel() const;
  size_t size_bytes() const { return static_cast<size_t>(numel()) * torch_pjrt::size_bytes(dtype); }
  TensorType with_dtype(DType other) const { return {other, dims}; }
  TensorType with_dims(Dims other) const { return {dtype, std::move(other)}; }
  // "tensor<2x3xf32>"
  std::string mlir() const;
  // "f32[2,3]"
  std::string hlo() const;

  bool operator==(const TensorType&) const = default;
};

int64_t product(const Dims& dims);
// Strides, in elements, of a row-major tensor; sizes of 0 count as 1, as in PyTorch.
Dims row_major_strides(const Dims& dims);
// Whether these are the strides of a dense tensor whose dimensions, outermost first, are in this order. Those of
// dimensions of one element say nothing.
bool lies_in_order(const Dims& sizes, const Dims& strides, const Dims& order);
bool is_row_major(const Dims& sizes, const Dims& strides);
// values[permutation[i]] at i.
Dims permuted(const Dims& values, const Dims& permutation);
// The permutation that undoes this one.
Dims inverse_permutation(const Dims& permutation);
// "[2, 3]", PyTorch's spelling in error messages, and the same without the brackets.
std::string to_string(const Dims& dims);
std::string to_list(const Dims& dims);

}  // namespace torch_pjrt
