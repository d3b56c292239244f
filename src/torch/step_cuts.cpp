#include "torch/step_cuts.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/graph_task.h>

#include <atomic>
#include <deque>

#include "base/env.h"
#include "exec/cut.h"
#include "exec/loop_finder.h"
#include "lazy/buffer.h"
#include "lazy/source_location.h"
#include "torch/storage.h"

namespace torch_pjrt {
namespace {

struct Rounds {
  LoopFinder loops;
  // Since the last cut:
  bool has_written_parameters = false;  // after a backward
  bool is_at_loop_end = false;

  void forget_step() { has_written_parameters = is_at_loop_end = false; }
};

Rounds& rounds_of(const lazy::Graph& graph) {
  static auto* all = new std::deque<Rounds>();
  const auto device = static_cast<size_t>(graph.device());
  while (all->size() <= device) all->emplace_back();
  return (*all)[device];
}

std::atomic<int> num_uncut_regions{0};

bool is_wanted() {
  static const bool wanted = env_flag("XLA_STEP_CUTS", true);
  return wanted && num_uncut_regions.load(std::memory_order_relaxed) == 0;
}

bool is_in_backward() { return torch::autograd::get_current_graph_task_id() != -1; }

size_t count_pending_buffers(const lazy::Graph& graph) {
  size_t count = 0;
  for (const lazy::Buffer* buffer = graph.first_buffer(); buffer != nullptr; buffer = buffer->next_pending()) ++count;
  return count;
}

// The first tensor that the call writes.
at::Tensor written_tensor(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  const c10::IValue& value = arguments[*info.first_mutated];
  if (value.isTensor()) return value.toTensor();
  if (!value.isList()) return {};
  const auto list = value.toListRef();
  return list.empty() || !list[0].isTensor() ? at::Tensor() : list[0].toTensor();
}

void note_written(lazy::Graph& graph, Rounds& rounds, const lazy::Signature& signature, const at::Tensor& tensor) {
  if (!tensor.defined() || !is_xla(tensor)) return;
  if (tensor.requires_grad() && tensor.is_leaf() && !at::GradMode::is_enabled()) {
    rounds.has_written_parameters = graph.has_backward();
  }
  if (is_in_backward()) return;
  const lazy::Buffer& buffer = buffer_of(tensor);
  // What never was on the device may be an intermediate, whose address others had before.
  if (buffer.previous_leaf() == nullptr) return;
  const uint64_t place = reinterpret_cast<uintptr_t>(&buffer) ^ signature.hash.high;
  rounds.is_at_loop_end |= rounds.loops.visit(place, [&] { return count_pending_buffers(graph); });
}

}  // namespace

void open_uncut_region() { num_uncut_regions.fetch_add(1, std::memory_order_relaxed); }

void close_uncut_region() { num_uncut_regions.fetch_sub(1, std::memory_order_relaxed); }

void cut_between_rounds(lazy::Graph& graph) {
  const bool is_backward = is_in_backward();
  if (is_backward) graph.note_backward();
  if (!is_wanted()) return;
  Rounds& rounds = rounds_of(graph);
  if (graph.num_pending() == 0) {
    rounds.forget_step();
    rounds.loops.cut_elsewhere();
    return;
  }
  if (is_backward) return;
  const bool is_step_end = rounds.has_written_parameters && at::GradMode::is_enabled();
  if (!is_step_end && !rounds.is_at_loop_end) return;
  // Before the attempt: a program that does not compile is not tried at every operator.
  rounds.forget_step();
  if (is_step_end) {
    rounds.loops.cut_elsewhere();
  } else {
    rounds.loops.cut();
  }
  cut(graph, is_step_end ? "the end of a training step" : "the end of a round", lazy::LocationScope::current());
}

void note_recorded(lazy::Graph& graph, const OpInfo& info, const lazy::Signature& signature,
                   c10::ArrayRef<c10::IValue> arguments) {
  if (!is_wanted()) return;
  Rounds& rounds = rounds_of(graph);
  rounds.loops.add(signature.hash.low);
  if (info.first_mutated) note_written(graph, rounds, signature, written_tensor(info, arguments));
}

void note_uploaded(lazy::Graph& graph, const TensorType& type) {
  if (!is_wanted() || graph.num_pending() == 0 || at::GradMode::is_enabled() || is_in_backward()) return;
  Rounds& rounds = rounds_of(graph);
  Hash128 place;
  place.mix(static_cast<uint64_t>(type.dtype));
  place.mix_range(type.dims.begin(), type.dims.end());
  // Results that are kept for later, a few of each batch.
  constexpr size_t kMaxGrowth = 8;
  rounds.is_at_loop_end |= rounds.loops.visit(place.low, [&] { return count_pending_buffers(graph); }, kMaxGrowth);
}

}  // namespace torch_pjrt
