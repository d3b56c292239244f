#include "torch/storage.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/TensorImpl.h>

#include "exec/runtime.h"
#include "torch/access.h"
#include "torch/device.h"
#include "torch/errors.h"
#include "torch/scalar_type.h"

namespace torch_pjrt {
namespace {

void delete_buffer(void* context) {
  const lazy::Lock lock(lazy::mutex());
  delete static_cast<lazy::Buffer*>(context);
}

c10::DataPtr make_data(int device, size_t size_bytes) {
  const lazy::Lock lock(lazy::mutex());
  auto* buffer = new lazy::Buffer(device, size_bytes);
  return {buffer, buffer, &delete_buffer, c10::Device(c10::DeviceType::XLA, static_cast<c10::DeviceIndex>(device))};
}

class XlaAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override { return make_data(current_device(), size_bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &delete_buffer; }

  // Reached through Storage::copy_; both pointers are buffers.
  void copy_data(void* destination, const void* source, std::size_t) const override {
    const lazy::Lock lock(lazy::mutex());
    const auto& from = *static_cast<const lazy::Buffer*>(source);
    static_cast<lazy::Buffer*>(destination)->set(from.value(), from.layout());
  }
};

XlaAllocator allocator;

const bool is_registered = [] {
  c10::SetAllocator(c10::DeviceType::XLA, &allocator);
  return true;
}();

// The CPU backend bit beside XLA's: dispatch still picks XLA and AutogradXLA, while PyTorch's shallow-copy check counts
// the tensor as dense, so that Module.to keeps Parameter objects in both directions.
constexpr c10::DispatchKeySet kKeySet =
    c10::DispatchKeySet(c10::DispatchKey::XLA) | c10::DispatchKeySet(c10::DispatchKey::CPU);

}  // namespace

bool is_xla(const at::Tensor& tensor) { return tensor.device().type() == c10::DeviceType::XLA; }

lazy::Buffer& buffer_of(const c10::Storage& storage) {
  TORCH_CHECK(storage.device_type() == c10::DeviceType::XLA, "expected an xla storage, got one on ", storage.device());
  return *static_cast<lazy::Buffer*>(storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get_context());
}

lazy::Buffer& buffer_of(const at::Tensor& tensor) {
  return *static_cast<lazy::Buffer*>(tensor.unsafeGetTensorImpl()
                                         ->unsafe_storage()
                                         .unsafeGetStorageImpl()
                                         ->_mutable_data_ptr_no_checks()
                                         .get_context());
}

int device_ordinal(std::optional<c10::Device> device) {
  TORCH_CHECK(!device || device->type() == c10::DeviceType::XLA, "expected an xla device, got ", *device);
  const int index = device && device->has_index() ? device->index() : current_device();
  // Counting may start the client, and the first device always exists.
  if (index > 0) {
    const int count = with_c10_errors([] { return Runtime::device_count(); });
    TORCH_CHECK(index < count, "xla:", index, ": invalid device ordinal; there ", count == 1 ? "is " : "are ", count,
                count == 1 ? " device" : " devices");
  }
  return index;
}

c10::Storage make_storage(int device, size_t size_bytes) {
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), size_bytes,
                                                            make_data(device, size_bytes), &allocator, true));
}

at::Tensor make_tensor(int device, at::IntArrayRef sizes, at::IntArrayRef strides, c10::ScalarType type) {
  to_dtype(type);
  const size_t size_bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(type));
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(make_storage(device, size_bytes), kKeySet,
                                                         c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

at::Tensor make_tensor(int device, const Dims& sizes, const Dims& strides, DType dtype) {
  return make_tensor(device, at::IntArrayRef(sizes), at::IntArrayRef(strides), to_scalar_type(dtype));
}

at::Tensor make_contiguous_tensor(int device, at::IntArrayRef sizes, c10::ScalarType type) {
  to_dtype(type);
  const size_t size_bytes = at::detail::computeStorageNbytesContiguous(sizes, c10::elementSize(type));
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(make_storage(device, size_bytes), kKeySet,
                                                         c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

void resize_storage(c10::StorageImpl& storage, size_t size_bytes) {
  const lazy::Lock lock(lazy::mutex());
  auto& buffer = *static_cast<lazy::Buffer*>(storage._mutable_data_ptr_no_checks().get_context());
  if (buffer.size_bytes() == size_bytes) return;
  resize_value(buffer, size_bytes);
  buffer.set_size_bytes(size_bytes);
  storage.set_nbytes(size_bytes);
}

}  // namespace torch_pjrt
