#include "exec/initial_values.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "exec/runtime.h"
#include "lazy/signature.h"

namespace torch_pjrt {
namespace {

using Reference = std::pair<const lazy::Node*, uint32_t>;

Reference reference(const lazy::Value& value) { return {value.node(), value.index()}; }

bool updates_what_was_there(const lazy::Graph& graph, const Snapshot& snapshot) {
  const auto had_data = [](const lazy::Buffer* buffer) { return buffer->previous_leaf() != nullptr; };
  return graph.has_backward() || std::ranges::any_of(snapshot.buffers, had_data);
}

// Those that operators read and that are no results.
std::map<Reference, lazy::Value> constants_in(const Snapshot& snapshot) {
  std::map<Reference, lazy::Value> constants;
  for (const lazy::Node* node : snapshot.nodes) {
    for (const lazy::Value& operand : node->operands()) {
      if (operand.node()->is_constant()) constants.emplace(reference(operand), operand);
    }
  }
  for (const lazy::Buffer* buffer : snapshot.buffers) constants.erase(reference(buffer->value()));
  return constants;
}

// An upload of that size takes less time than the compilation of a program.
bool are_few_zeros(const lazy::Value& value) {
  constexpr size_t kFewBytes = 64 << 20;
  const lazy::Signature& signature = value.node()->signature();
  const std::string& name = signature.schema->name;
  const auto slots = value.node()->slots();
  const auto is_zero = [](uint64_t slot) { return slot == 0; };  // of either kind; not -0.0
  const bool is_zero_filled =
      (name == "aten::full" || name == "aten::fill") && !slots.empty() && std::ranges::all_of(slots, is_zero);
  return (name == "aten::zero" || is_zero_filled) && signature.operands.empty() &&
         value.type().size_bytes() <= kFewBytes;
}

// Scalars, such as the step counters of an optimizer, go from step to step as one value where they are equal and one
// operator updates them all: a program's equal results of one operator are one.
bool are_one_scalar(const lazy::Value& a, const lazy::Value& b) {
  const lazy::Node& x = *a.node();
  const lazy::Node& y = *b.node();
  return &x.signature() == &y.signature() && a.index() == b.index() && a.type().dims.empty() && x.operands().empty() &&
         std::ranges::equal(x.slots(), y.slots());
}

}  // namespace

InitialValues::InitialValues(lazy::Graph& graph, const Snapshot& snapshot) : graph_(graph) {
  if (!graph.has_initial_values() || !updates_what_was_there(graph, snapshot)) return;
  const auto constants = constants_in(snapshot);
  if (constants.empty()) return;
  std::map<Reference, size_t> known;
  for (lazy::Buffer* buffer : snapshot.buffers) {
    // Of its first value a storage remembers the address, which may be another's by now: it is good for a look-up.
    const auto found = constants.find(buffer->initial_value());
    if (found == constants.end()) continue;
    const auto [place, is_new] = known.emplace(found->first, 0);
    if (is_new) {
      const lazy::Node* const update = buffer->value().node();
      place->second = result_for(found->second, update);
      initials_.push_back({found->second, update, place->second});
    }
    storages_.push_back({buffer, place->second});
  }
}

size_t InitialValues::result_for(const lazy::Value& value, const lazy::Node* update) {
  for (const Initial& initial : initials_) {
    if (initial.update == update && are_one_scalar(initial.value, value)) return initial.result;
  }
  results_.push_back(std::make_unique<lazy::Buffer>(graph_.device(), value.type().size_bytes()));
  results_.back()->set(value, nullptr);
  return results_.size() - 1;
}

size_t InitialValues::size_bytes() const {
  size_t sum = 0;
  for (const auto& result : results_) sum += result->size_bytes();
  return sum;
}

void InitialValues::upload_zeros() {
  size_t largest = 0;
  std::vector<lazy::Buffer*> zeros;
  for (const auto& result : results_) {
    if (!are_few_zeros(result->value())) continue;
    zeros.push_back(result.get());
    largest = std::max(largest, result->value().type().size_bytes());
  }
  const std::unique_ptr<void, decltype(&std::free)> bytes(std::calloc(largest, 1), &std::free);
  for (lazy::Buffer* result : zeros) {
    const TensorType type = result->value().type();
    result->set(graph_.leaf(Runtime::get().upload(bytes.get(), type, graph_.device())), nullptr);
  }
}

void InitialValues::prepare(Snapshot& snapshot) {
  upload_zeros();
  std::vector<lazy::Buffer*> computed;
  for (const auto& result : results_) {
    if (!result->value().is_data()) computed.push_back(result.get());
  }
  take_snapshot_of(graph_, computed, snapshot);
}

void InitialValues::replace() {
  std::vector<std::pair<lazy::Value, lazy::Value>> replacements;
  for (Initial& initial : initials_) {
    replacements.emplace_back(std::move(initial.value), results_[initial.result]->value());
  }
  for (const Storage& storage : storages_) storage.buffer->set_previous_leaf(results_[storage.result]->value());
  graph_.replace(replacements);
}

}  // namespace torch_pjrt
