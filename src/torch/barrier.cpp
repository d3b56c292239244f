// xla::optimization_barrier: the identity that XLA may not move code across. See barrier_autograd.cpp for its
// derivatives.
#include "torch/barrier.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "base/type_hash.h"
#include "lazy/source_location.h"
#include "ops/registry.h"
#include "torch/access.h"
#include "torch/errors.h"
#include "torch/memo.h"
#include "torch/scalar_type.h"
#include "torch/storage.h"

namespace torch_pjrt {
namespace {

lazy::Signature make_signature(const std::vector<lazy::Value>& values, const Hash128& hash) {
  static const lazy::Schema schema{"xla::optimization_barrier", "", {"tensors"}, {}, {}};
  lazy::Signature signature;
  signature.schema = &schema;
  signature.entry = find_op(schema.name);
  signature.hash = hash;
  lazy::Argument list;
  list.kind = lazy::Argument::Kind::kTensorList;
  for (const lazy::Value& value : values) {
    lazy::TensorRef ref;
    ref.source = lazy::TensorRef::Source::kOperand;
    ref.index = static_cast<uint32_t>(signature.operands.size());
    ref.dtype = value.type().dtype;
    list.tensors.push_back(ref);
    signature.operands.push_back(value.type());
    signature.outputs.push_back({value.type(), row_major_strides(value.type().dims)});
  }
  signature.arguments.push_back(std::move(list));
  return signature;
}

void check_tensors(at::TensorList tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    TORCH_CHECK(tensors[i].defined() && is_xla(tensors[i]), "optimization_barrier: tensor ", i,
                " must be an xla tensor, but is ",
                tensors[i].defined() ? "on " + tensors[i].device().str() : std::string("undefined"));
    TORCH_CHECK(tensors[i].device() == tensors[0].device(), "optimization_barrier: tensor ", i, " is on ",
                tensors[i].device(), ", tensor 0 on ", tensors[0].device());
  }
}

std::vector<lazy::Value> read_all(at::TensorList tensors) {
  std::vector<lazy::Value> values;
  for (const at::Tensor& tensor : tensors) values.push_back(read(tensor));
  return values;
}

std::vector<at::Tensor> barrier(at::TensorList tensors) {
  if (tensors.empty()) return {};
  check_tensors(tensors);
  const lazy::LocationScope line;
  return with_c10_errors([&] {
    const lazy::Lock lock(lazy::mutex());
    const auto values = record_barrier(read_all(tensors));
    std::vector<at::Tensor> results;
    for (size_t i = 0; i < tensors.size(); ++i) {
      at::Tensor result =
          make_contiguous_tensor(tensors[i].device().index(), tensors[i].sizes(), tensors[i].scalar_type());
      buffer_of(result).set(values[i], nullptr);
      results.push_back(std::move(result));
    }
    return results;
  });
}

// Works on whole storages: tensors that share one pass through the barrier together, and every alias sees the same
// value.
void barrier_in_place(at::TensorList tensors) {
  if (tensors.empty()) return;
  check_tensors(tensors);
  const lazy::LocationScope line;
  with_c10_errors([&] {
    const lazy::Lock lock(lazy::mutex());
    std::vector<lazy::Buffer*> buffers;
    std::vector<lazy::Value> values;
    for (const at::Tensor& tensor : tensors) {
      lazy::Buffer& buffer = buffer_of(tensor);
      if (!buffer.value() || std::find(buffers.begin(), buffers.end(), &buffer) != buffers.end()) continue;
      buffers.push_back(&buffer);
      values.push_back(buffer.value());
    }
    if (values.empty()) return;
    const auto results = record_barrier(std::move(values));
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i]->set(results[i], buffers[i]->layout());
  });
}

// For torch.compile and other users of meta tensors.
std::vector<at::Tensor> barrier_meta(at::TensorList tensors) {
  std::vector<at::Tensor> results;
  for (const at::Tensor& tensor : tensors) results.push_back(at::empty_symint(tensor.sym_sizes(), tensor.options()));
  return results;
}

void barrier_in_place_meta(at::TensorList) {}

TORCH_LIBRARY(xla, m) {
  m.def("optimization_barrier(Tensor[] tensors) -> Tensor[]");
  m.def("optimization_barrier_(Tensor(a!)[] tensors) -> ()");
}

// For every backend, so that a tensor on another device, and no tensor at all, get an answer too.
TORCH_LIBRARY_IMPL(xla, CompositeExplicitAutograd, m) {
  m.impl("optimization_barrier", barrier);
  m.impl("optimization_barrier_", barrier_in_place);
}

TORCH_LIBRARY_IMPL(xla, Meta, m) {
  m.impl("optimization_barrier", barrier_meta);
  m.impl("optimization_barrier_", barrier_in_place_meta);
}

}  // namespace

std::vector<lazy::Value> record_barrier(std::vector<lazy::Value> values) {
  static auto* signatures = new Memo<lazy::Signature>();
  Hash128 hash;
  hash.mix(std::string_view("xla::optimization_barrier"));
  for (const lazy::Value& value : values) mix(hash, value.type());
  const lazy::Signature* signature = signatures->find(hash);
  if (signature == nullptr) {
    signature = &signatures->insert(hash, std::make_unique<lazy::Signature>(make_signature(values, hash)));
  }
  lazy::Graph& graph = values[0].node()->graph();
  lazy::Node* node = graph.record(*signature, values, {});
  std::vector<lazy::Value> results;
  for (size_t i = 0; i < signature->outputs.size(); ++i) results.emplace_back(node, static_cast<uint32_t>(i));
  return results;
}

}  // namespace torch_pjrt
