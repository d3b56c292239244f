#include "base/tensor_type.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace torch_pjrt {

int64_t product(const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }

Dims row_major_strides(const Dims& dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(dims[i], 1);
  }
  return strides;
}

Dims permuted(const Dims& values, const Dims& permutation) {
  Dims result;
  for (const int64_t i : permutation) result.push_back(values[static_cast<size_t>(i)]);
  return result;
}

Dims inverse_permutation(const Dims& permutation) {
  Dims result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  }
  return result;
}

bool lies_in_order(const Dims& sizes, const Dims& strides, const Dims& order) {
  int64_t next = 1;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const auto d = static_cast<size_t>(*it);
    if (sizes[d] != 1 && strides[d] != next) return false;
    next *= sizes[d];
  }
  return true;
}

bool is_row_major(const Dims& sizes, const Dims& strides) {
  Dims order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  return lies_in_order(sizes, strides, order);
}

std::string to_list(const Dims& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : ", ") + std::to_string(dim);
  return text;
}

std::string to_string(const Dims& dims) { return "[" + to_list(dims) + "]"; }

int64_t TensorType::numel() const { return product(dims); }

std::string TensorType::mlir() const {
  std::string text = "tensor<";
  for (const int64_t dim : dims) text += std::to_string(dim) + "x";
  text += mlir_name(dtype);
  return text + ">";
}

std::string TensorType::hlo() const {
  std::string text(hlo_name(dtype));
  text += "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ",";
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

}  // namespace torch_pjrt
