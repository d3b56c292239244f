#include "torch/transfer.h"

#include <ATen/ops/empty.h>

#include "exec/cut.h"
#include "exec/device_value.h"
#include "exec/runtime.h"
#include "exec/statistics.h"
#include "lazy/source_location.h"
#include "torch/access.h"
#include "torch/recorder.h"
#include "torch/scalar_type.h"
#include "torch/step_cuts.h"
#include "torch/storage.h"

namespace torch_pjrt {
namespace {

TensorType type_of(const at::Tensor& tensor) {
  return {to_dtype(tensor.scalar_type()), {tensor.sizes().begin(), tensor.sizes().end()}};
}

// A storage-less holder of a tensor's elements, so that a cut computes them.
std::unique_ptr<lazy::Buffer> hold_elements(const at::Tensor& tensor) {
  lazy::Value value = read(tensor);
  auto holder = std::make_unique<lazy::Buffer>(tensor.device().index(), value.type().size_bytes());
  holder->set(std::move(value), nullptr);
  return holder;
}

std::string cut_cause(std::string_view reader, bool is_printing) {
  if (const auto fallback = running_fallback(); !fallback.empty()) return "fallback " + std::string(fallback);
  return is_printing ? "print" : std::string(reader);
}

struct Holders {
  std::vector<std::unique_ptr<lazy::Buffer>> buffers;
  ~Holders() {
    const lazy::Lock lock(lazy::mutex());
    buffers.clear();
  }
};

lazy::Value uploaded_leaf(Ref<DeviceValue> data, int device) {
  const lazy::LocationScope line;
  const lazy::Lock lock(lazy::mutex());
  lazy::Graph& graph = lazy::Graph::get(device);
  note_uploaded(graph, data->type());
  lazy::Value leaf = graph.leaf(std::move(data));
  leaf.node()->location = lazy::LocationScope::current();
  return leaf;
}

}  // namespace

lazy::Value upload(const at::Tensor& host, int device) {
  return uploaded_leaf(Runtime::get().upload(host.const_data_ptr(), type_of(host), device), device);
}

lazy::Value upload_owned(at::Tensor host, int device) {
  // Below it, copying takes no longer than the event that tells when the memory is free.
  constexpr size_t kWorthwhile = 16 << 10;
  if (host.nbytes() < kWorthwhile) return upload(host, device);
  static Counter& kept = counter("ZeroCopyUpload");
  kept.add();
  const void* data = host.const_data_ptr();
  const TensorType type = type_of(host);
  return uploaded_leaf(Runtime::get().upload_zero_copy(data, type, device, [host = std::move(host)] {}), device);
}

std::vector<at::Tensor> download(const std::vector<at::Tensor>& tensors, std::string_view reader) {
  std::vector<Ref<lazy::DeviceData>> data(tensors.size());
  const lazy::CallSite site = lazy::find_call_site();
  const lazy::LocationScope line;
  Holders holders;
  {
    const lazy::Lock lock(lazy::mutex());
    holders.buffers.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].defined() && is_xla(tensors[i])) holders.buffers[i] = hold_elements(tensors[i]);
    }
    for (const auto& holder : holders.buffers) {
      if (holder && !holder->value().is_data()) {
        cut_for(*holder, cut_cause(reader, site.is_printing), site.location);
      }
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      auto& holder = holders.buffers[i];
      if (!holder) continue;
      data[i] = holder->value().node()->data();
      if (!may_be_lost(*holder)) holder.reset();
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (holders.buffers[i])
      data[i] = make_good(*holders.buffers[i], cut_cause(reader, site.is_printing), site.location);
  }
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!data[i]) {
      results.push_back(tensors[i]);
      continue;
    }
    at::Tensor host = at::empty(tensors[i].sizes(), at::TensorOptions().dtype(tensors[i].scalar_type()));
    Runtime::get().download(static_cast<DeviceValue&>(*data[i]), host.mutable_data_ptr());
    results.push_back(std::move(host));
  }
  return results;
}

}  // namespace torch_pjrt
