// Derivatives and torch.func transforms of xla::optimization_barrier.
//
// A node of its own, as PyTorch has for its operators: torch::autograd::Function neither sees the tensors in a list nor
// works inside torch.func.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>

#include "torch/api.h"

namespace torch_pjrt {
namespace {

std::vector<at::Tensor> call_barrier(at::TensorList tensors) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("xla::optimization_barrier", "")
                             .typed<std::vector<at::Tensor>(at::TensorList)>();
  return op.call(tensors);
}

void call_barrier_in_place(at::TensorList tensors) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("xla::optimization_barrier_", "").typed<void(at::TensorList)>();
  op.call(tensors);
}

// The tensors that exist go through one barrier; the others stay undefined.
void pass_defined(std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> present;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) present.push_back(tensor);
  }
  if (present.empty()) return;
  const auto barred = call_barrier(present);
  size_t next = 0;
  for (at::Tensor& tensor : tensors) {
    if (tensor.defined()) tensor = barred[next++];
  }
}

// The gradients pass through a barrier of their own; being the same operator, it differentiates again.
struct OptimizationBarrierBackward : torch::autograd::Node {
  using torch::autograd::Node::Node;

  std::string name() const override { return "OptimizationBarrierBackward"; }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!task_should_compute_output(i)) gradients[i] = at::Tensor();
    }
    pass_defined(gradients);
    return std::move(gradients);
  }
};

void set_histories(const std::vector<at::Tensor>& results, const c10::intrusive_ptr<torch::autograd::Node>& node) {
  for (const at::Tensor& result : results) {
    if (torch::autograd::isDifferentiableType(result.scalar_type())) {
      torch::autograd::set_history(result, node);
    } else {
      // Keeps the places of gradients and results the same.
      node->add_input_metadata(torch::autograd::Node::undefined_input());
    }
  }
}

std::vector<at::Tensor> tangents_of(at::TensorList tensors) {
  std::vector<at::Tensor> tangents;
  for (const at::Tensor& tensor : tensors) tangents.push_back(tensor._fw_grad(/*level=*/0));
  return tangents;
}

std::vector<at::Tensor> differentiable_barrier(at::TensorList tensors) {
  c10::intrusive_ptr<torch::autograd::Node> node;
  if (torch::autograd::compute_requires_grad(tensors)) {
    node = c10::make_intrusive<OptimizationBarrierBackward>(torch::autograd::collect_next_edges(tensors));
  }
  std::vector<at::Tensor> tangents = tangents_of(tensors);
  std::vector<at::Tensor> results;
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    results = call_barrier(tensors);
  }
  if (node) set_histories(results, node);
  pass_defined(tangents);
  for (size_t i = 0; i < results.size(); ++i) {
    if (tangents[i].defined()) results[i]._set_fw_grad(tangents[i], /*level=*/0, /*is_inplace_op=*/false);
  }
  return results;
}

// No value changes, so autograd has nothing to know: no node, no version bump, and leaves are welcome.
void undifferentiated_barrier(at::TensorList tensors) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  call_barrier_in_place(tensors);
}

TORCH_LIBRARY_IMPL(xla, Autograd, m) {
  m.impl("optimization_barrier", differentiable_barrier);
  m.impl("optimization_barrier_", undifferentiated_barrier);
}

// --- vmap -----------------------------------------------------------------------------------------------------------

// The tensors without their outermost batch; an identity does not care which dimension that is.
class Batch {
 public:
  explicit Batch(at::TensorList tensors) : values(tensors.begin(), tensors.end()), dims_(tensors.size()) {
    for (const at::Tensor& tensor : tensors) level_ = std::max(level_, level_of(tensor));
    for (size_t i = 0; i < values.size(); ++i) {
      if (level_of(values[i]) != level_) continue;
      const auto* batched = at::functorch::maybeGetBatchedImpl(values[i]);
      dims_[i] = batched->bdim();
      // Assigned last: the implementation belongs to the tensor that is replaced.
      values[i] = at::Tensor(batched->value());
    }
  }

  void wrap(std::vector<at::Tensor>& results) const {
    for (size_t i = 0; i < results.size(); ++i) {
      if (dims_[i]) results[i] = at::functorch::makeBatched(results[i], *dims_[i], level_);
    }
  }

  std::vector<at::Tensor> values;

 private:
  static int64_t level_of(const at::Tensor& tensor) {
    const auto* batched = at::functorch::maybeGetBatchedImpl(tensor);
    return batched == nullptr ? -1 : batched->level();
  }

  int64_t level_ = 0;
  std::vector<std::optional<int64_t>> dims_;
};

std::vector<at::Tensor> batched_barrier(at::TensorList tensors) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  const Batch batch(tensors);
  std::vector<at::Tensor> results = call_barrier(batch.values);
  batch.wrap(results);
  return results;
}

void batched_barrier_in_place(at::TensorList tensors) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::FuncTorchBatched);
  call_barrier_in_place(Batch(tensors).values);
}

TORCH_LIBRARY_IMPL(xla, FuncTorchBatched, m) {
  m.impl("optimization_barrier", batched_barrier);
  m.impl("optimization_barrier_", batched_barrier_in_place);
}

}  // namespace

namespace api {

std::vector<at::Tensor> optimization_barrier(const std::vector<at::Tensor>& tensors) { return call_barrier(tensors); }

void optimization_barrier_(const std::vector<at::Tensor>& tensors) { call_barrier_in_place(tensors); }

}  // namespace api
}  // namespace torch_pjrt
