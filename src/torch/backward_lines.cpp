#include "torch/backward_lines.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace torch_pjrt {
namespace {

// A node of autograd is known by the thread that made it and its number there.
struct NodeLine {
  uint64_t thread = 0;
  uint64_t number = 0;
  lazy::LocationId line = 0;
};

// Each node has one place, which a newer one may take over: the lines of the newest nodes, in bounded memory.
class NodeLines {
 public:
  // The first line stays: what is recorded between one node and the next belongs to another call without a node.
  void add(uint64_t thread, uint64_t number, lazy::LocationId line) {
    const std::lock_guard lock(mutex_);
    if (entries_.empty()) entries_.resize(kSize);
    NodeLine& entry = place(thread, number);
    if (entry.thread != thread || entry.number != number) entry = {thread, number, line};
  }

  lazy::LocationId find(uint64_t thread, uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (entries_.empty()) return 0;
    const NodeLine& entry = place(thread, number);
    return entry.thread == thread && entry.number == number ? entry.line : 0;
  }

 private:
  static constexpr size_t kSize = size_t{1} << 17;
  NodeLine& place(uint64_t thread, uint64_t number) {
    return entries_[(number + thread * 0x9e3779b97f4a7c15ULL) % kSize];
  }

  std::mutex mutex_;
  std::vector<NodeLine> entries_;
};

NodeLines& node_lines() {
  static auto* instance = new NodeLines();
  return *instance;
}

// The newest backward on this thread: autograd adds up its results when it is no longer the current node.
thread_local int last_task = -1;
thread_local lazy::LocationId last_line = 0;

bool requires_grad(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() && value.toTensor().requires_grad();
  if (!value.isTensorList()) return false;
  const auto list = value.toTensorList();
  return std::any_of(list.begin(), list.end(), [](const at::Tensor& tensor) { return tensor.requires_grad(); });
}

}  // namespace

void note_forward_line(c10::ArrayRef<c10::IValue> arguments, lazy::LocationId line) {
  // Autograd makes its node just before it calls the kernel, on this thread.
  if (!at::GradMode::is_enabled() || at::sequence_number::peek() == 0) return;
  if (!std::any_of(arguments.begin(), arguments.end(), requires_grad)) return;
  node_lines().add(at::RecordFunction::currentThreadId(), at::sequence_number::peek() - 1, line);
}

lazy::LocationId backward_line() {
  const int task = torch::autograd::get_current_graph_task_id();
  if (task == -1) return 0;
  if (const auto node = torch::autograd::get_current_node()) {
    last_task = task;
    last_line = node_lines().find(node->thread_id(), node->sequence_nr());
  }
  return last_task == task ? last_line : 0;
}

}  // namespace torch_pjrt
