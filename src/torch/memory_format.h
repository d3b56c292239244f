// Strides of results where PyTorch's CPU kernel decides them and no meta kernel tells.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor_type.h"

namespace torch_pjrt {

// Whether the strides are those of a new tensor. is_contiguous() leaves those of dimensions of one element out.
inline bool has_row_major_strides(const c10::TensorImpl& impl) {
  const auto sizes = impl.sizes(), strides = impl.strides();
  int64_t next = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (strides[i] != next) return false;
    next *= std::max<int64_t>(sizes[i], 1);
  }
  return true;
}

// The strides that eager PyTorch on CPU gives to result `output` of an operator that is called with `arguments`, or
// nullopt when what the meta kernel says holds. `sizes` are the result's.
std::optional<Dims> cpu_strides(const std::string& name, c10::ArrayRef<c10::IValue> arguments, size_t output,
                                const Dims& sizes);

// Dense strides for `sizes`, of the order that the dimensions of `example` have: a result of the same operator on
// smaller tensors, two elements for two or more. nullopt when it is none.
std::optional<Dims> strides_in_order_of(const at::Tensor& example, const Dims& sizes);

// Whether a new tensor with these options gets preserved_strides.
bool preserves_strides(const at::Tensor& like, std::optional<at::Layout> layout,
                       std::optional<at::MemoryFormat> memory_format);

// Strides of a new tensor like this one: its own where it is dense, else as dense ones in their order.
std::vector<int64_t> preserved_strides(const at::Tensor& like);

}  // namespace torch_pjrt
