// Data between devices, and between xla tensors.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_copy_from_native.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include <cstring>

#include "exec/cut.h"
#include "exec/runtime.h"
#include "exec/timeline.h"
#include "lazy/source_location.h"
#include "torch/access.h"
#include "torch/errors.h"
#include "torch/memory_format.h"
#include "torch/recomputation.h"
#include "torch/scalar_type.h"
#include "torch/storage.h"
#include "torch/transfer.h"

namespace torch_pjrt {
namespace {

void check_broadcast(const at::Tensor& source, const at::Tensor& destination) {
  if (source.sizes() == destination.sizes()) return;
  // The words of TensorIterator, which checks this for every other device.
  const auto shape = at::infer_size(destination.sizes(), source.sizes());
  TORCH_CHECK(at::IntArrayRef(shape) == destination.sizes(), "output with shape ", destination.sizes(),
              " doesn't match the broadcast shape ", at::IntArrayRef(shape));
}

void copy_on_device(const at::Tensor& source, const at::Tensor& destination) {
  const lazy::Lock lock(lazy::mutex());
  lazy::Graph& graph = lazy::Graph::get(source.device().index());
  follow_recomputation(graph);
  if (Timeline::is_on()) [[unlikely]]
    note_recording(graph);
  write(destination, convert(read(source), to_dims(destination.sizes()), to_dtype(destination.scalar_type())));
}

void copy_to_device(const at::Tensor& source, const at::Tensor& destination) {
  // Converting on the host is cheaper than a program for it, and never larger than the destination unless broadcast.
  at::Tensor host = source.to(destination.scalar_type()).resolve_conj().resolve_neg().contiguous();
  // Of a tensor of the caller nobody knows when it is written to next: it is copied. What was made here is ours.
  const int device = destination.device().index();
  lazy::Value value = host.is_alias_of(source) ? upload(host, device) : upload_owned(std::move(host), device);
  const lazy::Lock lock(lazy::mutex());
  write(destination, convert(std::move(value), to_dims(destination.sizes()), to_dtype(destination.scalar_type())));
}

void copy_to_host(const at::Tensor& source, const at::Tensor& destination) {
  const at::Tensor host = download({source})[0];
  const_cast<at::Tensor&>(destination).copy_(host);
}

void copy_across_devices(const at::Tensor& source, const at::Tensor& destination) {
  copy_to_device(download({source})[0], destination);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  const lazy::LocationScope line;
  return with_c10_errors([&] {
    check_broadcast(self, dst);
    at::assert_no_internal_overlap(dst);
    at::assert_no_partial_overlap(dst, self);
    if (!is_xla(dst)) {
      copy_to_host(self, dst);
    } else if (!is_xla(self)) {
      copy_to_device(self, dst);
    } else if (self.device() == dst.device()) {
      copy_on_device(self, dst);
    } else {
      copy_across_devices(self, dst);
    }
    return dst;
  });
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (self.sizes() != dst.sizes()) {
    dst.resize_(self.sizes());
    // A kernel on the CPU may have chosen columns, as LAPACK's do.
    if (self.is_non_overlapping_and_dense()) {
      dst.unsafeGetTensorImpl()->set_sizes_and_strides(self.sizes(), self.strides());
    }
  }
  return copy_from(self, dst, false);
}

// PyTorch's own, which does not keep strides on this device because it takes it for one without views. Stands for CPU
// tensors too: they are where data comes from.
at::Tensor to_copy(const at::Tensor& self, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                   std::optional<at::Device> device, std::optional<bool> pin_memory, bool non_blocking,
                   std::optional<at::MemoryFormat> memory_format) {
  const at::Device target = device.value_or(self.device());
  if (target.type() != c10::DeviceType::XLA || !preserves_strides(self, layout, memory_format)) {
    return at::native::_to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format);
  }
  const auto options = at::TensorOptions().dtype(dtype.value_or(self.scalar_type())).device(target);
  return at::empty_strided(self.sizes(), preserved_strides(self), options).copy_(self, non_blocking);
}

// Kernels of the CPU choose their results' strides by their arguments', so these are kept.
std::vector<at::Tensor> to_cpu(at::TensorList tensors) {
  return with_c10_errors([&] {
    std::vector<at::Tensor> copies = download({tensors.begin(), tensors.end()});
    for (size_t i = 0; i < copies.size(); ++i) {
      const at::Tensor& tensor = tensors[i];
      if (!tensor.defined() || tensor.is_contiguous() || !tensor.is_non_overlapping_and_dense()) continue;
      copies[i] = at::empty_strided(tensor.sizes(), tensor.strides(), copies[i].options()).copy_(copies[i]);
    }
    return copies;
  });
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
  return with_c10_errors([&] { return download({self}, ".item()")[0].item(); });
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_to_copy", to_copy);
  m.impl("_to_cpu", to_cpu);
  m.impl("_local_scalar_dense", local_scalar_dense);
}

TORCH_LIBRARY_IMPL(aten, CPU, m) { m.impl("_to_copy", to_copy); }

// PyTorch would hand over a copy of a conjugate or negative view: the schema does not say that `dst` is written.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace
}  // namespace torch_pjrt
