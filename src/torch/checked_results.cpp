#include "torch/checked_results.h"

#include <algorithm>
#include <vector>

#include "lazy/buffer.h"
#include "lazy/graph.h"
#include "torch/access.h"

namespace torch_pjrt {
namespace {

// Marks, with a pass of its own, the pending nodes that come from another output of `looked_at.node()`.
uint64_t mark_dependents(lazy::Graph& graph, const lazy::Value& looked_at) {
  const uint64_t pass = graph.next_pass();
  for (const lazy::Node* node = lazy::Graph::next(looked_at.node()); node != nullptr; node = lazy::Graph::next(node)) {
    const auto operands = node->operands();
    const bool depends = std::any_of(operands.begin(), operands.end(), [&](const lazy::Value& operand) {
      if (operand.node() == looked_at.node()) return operand.index() != looked_at.index();
      return operand.node()->pass == pass;
    });
    if (depends) node->pass = pass;
  }
  return pass;
}

void depend_on(const lazy::Value& check, const lazy::Value& looked_at) {
  lazy::Graph& graph = check.node()->graph();
  const uint64_t pass = mark_dependents(graph, looked_at);
  std::vector<lazy::Buffer*> buffers;
  for (lazy::Buffer* buffer = graph.first_buffer(); buffer != nullptr; buffer = buffer->next_pending()) {
    const lazy::Value& value = buffer->value();
    const bool is_sibling = value.node() == looked_at.node() && value.index() != looked_at.index();
    if (is_sibling || value.node()->pass == pass) buffers.push_back(buffer);
  }
  for (lazy::Buffer* buffer : buffers) {
    const TensorType type = buffer->value().type();
    buffer->set(record_internal(graph, "xla::checked", {"self", "check"}, {buffer->value(), check}, {}, type),
                buffer->layout());
  }
}

// Through how the result is read.
const lazy::Value& skip_reads(const lazy::Value& value) {
  const lazy::Value* result = &value;
  while (!result->is_data() && result->node()->operands().size() == 1 &&
         result->node()->signature().schema->name.starts_with("xla::")) {
    result = &result->node()->operands()[0];
  }
  return *result;
}

}  // namespace

void make_results_depend_on(const lazy::Value& check) {
  for (const lazy::Value& operand : check.node()->operands()) {
    const lazy::Value& looked_at = skip_reads(operand);
    if (!looked_at.is_data()) depend_on(check, looked_at);
  }
}

}  // namespace torch_pjrt
