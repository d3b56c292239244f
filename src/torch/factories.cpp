// Tensors without contents, and the operators that change which storage, size or strides a tensor has. They are
// PyTorch's own metadata kernels wherever those exist.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "torch/errors.h"
#include "torch/memory_format.h"
#include "torch/storage.h"

namespace torch_pjrt {
namespace {

void check_options(std::optional<at::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "xla: only strided tensors are supported, got layout ",
              layout.value_or(at::kStrided));
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

c10::ScalarType or_default(std::optional<c10::ScalarType> dtype) {
  return dtype.value_or(c10::typeMetaToScalarType(c10::get_default_dtype()));
}

// Under torch.use_deterministic_algorithms what was not written must show: NaN, or the largest number.
bool fills_memory() {
  return at::globalContext().deterministicAlgorithms() && at::globalContext().deterministicFillUninitializedMemory();
}

at::Tensor fill_if_deterministic(at::Tensor tensor) {
  if (fills_memory()) [[unlikely]]
    at::native::fill_empty_deterministic_(tensor);
  return tensor;
}

at::Tensor empty(at::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<at::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<at::MemoryFormat> memory_format) {
  check_options(layout, pin_memory);
  for (const int64_t dim : size) {
    TORCH_CHECK(dim >= 0, "Trying to create tensor with negative dimension ", dim, ": ", size);
  }
  at::Tensor tensor = make_contiguous_tensor(device_ordinal(device), size, or_default(dtype));
  const auto format = memory_format.value_or(at::MemoryFormat::Contiguous);
  if (format != at::MemoryFormat::Contiguous && format != at::MemoryFormat::Preserve) {
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(format);
  }
  return fill_if_deterministic(std::move(tensor));
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  TORCH_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  for (size_t i = 0; i < size.size(); ++i) {
    TORCH_CHECK(size[i] >= 0, "Trying to create tensor with negative dimension ", size[i], ": ", size);
    TORCH_CHECK(stride[i] >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
  }
  return fill_if_deterministic(make_tensor(device_ordinal(device), size, stride, or_default(dtype)));
}

// PyTorch's own keeps no order of dimensions on this device, because it takes it for one without views.
at::Tensor empty_like(const at::Tensor& self, std::optional<c10::ScalarType> dtype, std::optional<at::Layout> layout,
                      std::optional<c10::Device> device, std::optional<bool> pin_memory,
                      std::optional<at::MemoryFormat> memory_format) {
  if (!preserves_strides(self, layout, memory_format)) {
    return at::native::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  }
  return at::empty_strided(self.sizes(), preserved_strides(self), dtype.value_or(self.scalar_type()), layout,
                           device.value_or(self.device()), pin_memory);
}

// Like at::native::resize_: the storage grows when it must and never shrinks.
void resize_in_place(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  impl.set_sizes_and_strides(size, stride);
  if (impl.numel() == 0) return;
  const size_t needed =
      at::detail::computeStorageNbytes(size, stride, self.itemsize(), static_cast<size_t>(self.storage_offset()));
  c10::StorageImpl& storage = *impl.unsafe_storage().unsafeGetStorageImpl();
  if (storage.nbytes() >= needed) return;
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  with_c10_errors([&] { resize_storage(storage, needed); });
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> memory_format) {
  for (const int64_t dim : size) {
    TORCH_CHECK(dim >= 0, "Trying to resize tensor with negative dimension ", dim, ": ", size);
  }
  const auto old_bytes = static_cast<int64_t>(self.storage().nbytes());
  if (self.sizes() != size) resize_in_place(self, size, row_major_strides({size.begin(), size.end()}));
  if (fills_memory()) [[unlikely]]
    at::native::fill_resize_deterministic_(self, old_bytes);
  if (memory_format) {
    TORCH_CHECK(*memory_format != at::MemoryFormat::Preserve, "Unsupported memory format", *memory_format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*memory_format);
  }
  return self;
}

at::Tensor& set_storage_offset(at::Tensor& self, at::Storage source, int64_t storage_offset, at::IntArrayRef size,
                               at::IntArrayRef stride) {
  at::native::checkSetStorage(self, source, storage_offset, size, stride);
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  impl.set_storage_offset(storage_offset);
  resize_in_place(
      self, size,
      stride.data() == nullptr ? row_major_strides({size.begin(), size.end()}) : Dims(stride.begin(), stride.end()));
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto numel = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage_offset(self, std::move(source), 0, {numel}, {1});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_storage_offset(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_empty(at::Tensor& self) {
  return set_storage_offset(self, make_storage(self.device().index(), 0), 0, {0}, {1});
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) { return at::native::view(self, size); }

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("empty_like", empty_like);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("resize_", resize_);
  m.impl("set_", set_empty);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Storage_storage_offset", set_storage_offset);
  m.impl("set_.source_Tensor", set_tensor);
}

}  // namespace
}  // namespace torch_pjrt
