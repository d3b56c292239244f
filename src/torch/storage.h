// Storages of `xla` tensors: plain c10::StorageImpl whose DataPtr holds a lazy::Buffer. The buffer's address is the
// tensor's unique data_ptr; nothing may read through it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include "lazy/buffer.h"

namespace torch_pjrt {

bool is_xla(const at::Tensor& tensor);

// RuntimeError when the storage is not an xla storage.
lazy::Buffer& buffer_of(const c10::Storage& storage);
lazy::Buffer& buffer_of(const at::Tensor& tensor);

// "xla" without an index is the current device; RuntimeError when the device is not an xla device or does not exist.
int device_ordinal(std::optional<c10::Device> device);

c10::Storage make_storage(int device, size_t size_bytes);
// A tensor of these sizes and strides over a new storage without a value.
at::Tensor make_tensor(int device, at::IntArrayRef sizes, at::IntArrayRef strides, c10::ScalarType type);
at::Tensor make_tensor(int device, const Dims& sizes, const Dims& strides, DType dtype);
at::Tensor make_contiguous_tensor(int device, at::IntArrayRef sizes, c10::ScalarType type);

// Changes a storage's size; contents up to the smaller size are kept, what is new reads as zero.
void resize_storage(c10::StorageImpl& storage, size_t size_bytes);

}  // namespace torch_pjrt
