#include "torch/operand_check.h"

#include <algorithm>

#include "exec/device_value.h"
#include "exec/runtime.h"
#include "lazy/buffer.h"
#include "ops/host_kernel.h"
#include "torch/scalar_type.h"
#include "torch/storage.h"

namespace torch_pjrt {
namespace {

// The data of a storage whose elements lie in host memory in the order of the storage; nullptr for another.
const DeviceValue* find_known(const lazy::Buffer& buffer, DType dtype) {
  if (!buffer.value().is_data() || buffer.layout() != nullptr) return nullptr;
  const auto& data = static_cast<const DeviceValue&>(*buffer.value().node()->data());
  const bool is_known = data.is_uploaded() && data.type().dtype == dtype && !data.is_donated() &&
                        data.buffers().size() == 1 && host_kernels_on() && Runtime::get().is_cpu() && data.is_ready();
  return is_known ? &data : nullptr;
}

template <typename T>
void set_extent(const DeviceValue& data, const T* elements) {
  int64_t smallest = elements[0], largest = elements[0];
  for (int64_t i = 1; i < data.type().numel(); ++i) {
    smallest = std::min<int64_t>(smallest, elements[i]);
    largest = std::max<int64_t>(largest, elements[i]);
  }
  data.set_extent(smallest, largest);
}

[[noreturn]] void refuse(const RangeError& error, int64_t index) {
  if (error.after) throw_error(error.code, error.before, index, *error.after);
  throw_error(error.code, error.before);
}

// In row-major order, as eager PyTorch finds the first one.
template <typename T>
void check_each(const OperandCheck& check, const T* elements, at::IntArrayRef sizes, at::IntArrayRef strides) {
  if (sizes.empty()) {
    if (!check.accepts(*elements)) refuse(check.error, *elements);
    return;
  }
  for (int64_t i = 0; i < sizes[0]; ++i) {
    check_each(check, elements + i * strides[0], sizes.slice(1), strides.slice(1));
  }
}

// Where an element of a tensor, counted in row-major order, lies in its storage.
int64_t position_of(const at::Tensor& tensor, int64_t element) {
  int64_t position = tensor.storage_offset();
  for (int64_t dim = tensor.dim() - 1; dim >= 0; --dim) {
    position += element % tensor.size(dim) * tensor.stride(dim);
    element /= tensor.size(dim);
  }
  return position;
}

template <typename T>
void check_known(const OperandCheck& check, const DeviceValue& data, const at::Tensor& index) {
  const auto* elements = static_cast<const T*>(data.buffers()[0].unsafe_pointer());
  if (!data.has_extent()) set_extent(data, elements);
  if (data.is_within(check.low, check.high)) return;
  if (check.element) return check_each(check, elements + position_of(index, *check.element), {}, {});
  // The whole storage is not; perhaps this view of it is.
  check_each(check, elements + index.storage_offset(), index.sizes(), index.strides());
}

}  // namespace

void check_if_known(const OperandCheck& check, const at::Tensor& index) {
  const DType dtype = to_dtype(index.scalar_type());
  const DeviceValue* data = find_known(buffer_of(index), dtype);
  if (data == nullptr || index.numel() == 0) return;
  switch (dtype) {
    case DType::kU8:
      return check_known<uint8_t>(check, *data, index);
    case DType::kS32:
      return check_known<int32_t>(check, *data, index);
    case DType::kS64:
      return check_known<int64_t>(check, *data, index);
    default:
      return;  // the program checks the others
  }
}

}  // namespace torch_pjrt
