#include "torch/recomputation.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/graph_task.h>

#include <atomic>

#include "base/env.h"

namespace torch_pjrt {
namespace {

// The autograd graph task in which an operator was last seen with gradients off, on this thread.
thread_local int plain_backward_task = -1;

std::atomic<bool> seen_backward{false};

// The newest pending value, which exists last.
lazy::Value newest_value(const lazy::Graph& graph) {
  lazy::Node* node = graph.last();
  if (node == nullptr) return {};
  const auto& outputs = node->signature().outputs;
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].is_defined) return {node, i};
  }
  return {};
}

// Operators with gradients on, inside a running backward, compute something again, unless that backward is itself being
// differentiated (create_graph). Such a backward keeps its graph and never runs an operator with gradients off.
bool is_recomputing() {
  const int task = torch::autograd::get_current_graph_task_id();
  if (task == -1) return false;
  seen_backward.store(true, std::memory_order_relaxed);
  if (!at::GradMode::is_enabled()) {
    plain_backward_task = task;
    return false;
  }
  return !torch::autograd::get_current_graph_task_keep_graph() || plain_backward_task == task;
}

}  // namespace

bool has_seen_backward() { return seen_backward.load(std::memory_order_relaxed); }

void follow_recomputation(lazy::Graph& graph) {
  static const bool is_wanted = env_flag("XLA_REMAT_BARRIER", true);
  lazy::RematRegion& region = graph.remat_region();
  const bool recomputing = is_recomputing() && is_wanted;
  if (recomputing == region.is_active()) return;
  if (!recomputing) {
    region.leave();
    return;
  }
  region.enter(newest_value(graph));
}

}  // namespace torch_pjrt
