#include "lazy/graph.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "lazy/buffer.h"
#include "lazy/source_location.h"

namespace torch_pjrt::lazy {
namespace {

std::vector<std::unique_ptr<Graph>>& graphs() {
  // Leaked: tensors held by Python outlive static destruction.
  static auto* all = new std::vector<std::unique_ptr<Graph>>();
  return *all;
}

}  // namespace

std::recursive_mutex& mutex() {
  static auto* instance = new std::recursive_mutex();
  return *instance;
}

Value::~Value() {
  if (node_ != nullptr && --node_->references_ == 0) Graph::release(node_);
}

Graph& Graph::get(int device) {
  auto& all = graphs();
  TP_CHECK(device >= 0, "device ordinal ", device);
  while (all.size() <= static_cast<size_t>(device)) all.push_back(nullptr);
  auto& graph = all[static_cast<size_t>(device)];
  if (!graph) graph = std::make_unique<Graph>(device);
  return *graph;
}

std::vector<Graph*> Graph::all() {
  std::vector<Graph*> result;
  for (const auto& graph : graphs()) {
    if (graph) result.push_back(graph.get());
  }
  return result;
}

Node* Graph::record(const Signature& signature, std::span<Value> operands, std::span<const uint64_t> slots) {
  auto* node = new Node();
  node->signature_ = &signature;
  node->graph_ = this;
  node->region = remat_region_.id();
  if (nodes_have_locations()) [[unlikely]]
    node->location = LocationScope::current();
  set_inputs(*node, operands, slots);
  node->is_constant_ =
      std::ranges::all_of(node->operands(), [](const Value& operand) { return operand.node()->is_constant(); });
  node->is_pending_ = true;
  node->previous_ = last_;
  (last_ == nullptr ? first_ : last_->next_) = node;
  last_ = node;
  ++num_pending_;
  ++num_recorded_;
  return node;
}

Value Graph::leaf(Ref<DeviceData> data) {
  auto* node = new Node();
  node->graph_ = this;
  node->data_ = std::move(data);
  return {node, 0};
}

void Graph::set_inputs(Node& node, std::span<Value> operands, std::span<const uint64_t> slots) {
  node.num_operands_ = static_cast<uint32_t>(operands.size());
  node.num_slots_ = static_cast<uint32_t>(slots.size());
  if (!operands.empty()) {
    node.operands_ = std::make_unique<Value[]>(operands.size());
    std::move(operands.begin(), operands.end(), node.operands_.get());
  }
  if (!slots.empty()) {
    node.slots_ = std::make_unique_for_overwrite<uint64_t[]>(slots.size());
    std::copy(slots.begin(), slots.end(), node.slots_.get());
  }
}

void Graph::replace_data(Node& leaf, Ref<DeviceData> data) {
  TP_CHECK(leaf.is_data() && leaf.data_->type() == data->type(), "other data than the leaf's");
  leaf.data_ = std::move(data);
}

void Graph::replace(std::span<const std::pair<Value, Value>> replacements) {
  std::map<std::pair<const Node*, uint32_t>, const Value*> replacement_of;
  for (const auto& [old, replacement] : replacements) {
    TP_CHECK(old.type() == replacement.type(), "another type than the value's");
    replacement_of.emplace(std::pair(old.node(), old.index()), &replacement);
  }
  for (Node* node = first_; node != nullptr; node = node->next_) {
    for (Value& operand : std::span(node->operands_.get(), node->num_operands_)) {
      const auto found = replacement_of.find({operand.node(), operand.index()});
      if (found != replacement_of.end()) operand = *found->second;
    }
  }
}

Value Graph::copy(const Node& node, std::span<Value> operands) {
  auto* copy = new Node();
  copy->signature_ = node.signature_;
  copy->graph_ = node.graph_;
  copy->region = node.region;
  copy->location = node.location;
  set_inputs(*copy, operands, node.slots());
  return {copy, 0};
}

void Graph::unlink(Node* node) {
  (node->previous_ == nullptr ? first_ : node->previous_->next_) = node->next_;
  (node->next_ == nullptr ? last_ : node->next_->previous_) = node->previous_;
  --num_pending_;
}

// Dead nodes are chained through next_ so that a graph of any length is freed in constant stack space.
void Graph::release(Node* node) {
  Node* dead = nullptr;
  const auto bury = [&dead](Node* corpse) {
    if (corpse->is_pending_) corpse->graph_->unlink(corpse);
    corpse->next_ = dead;
    dead = corpse;
  };
  bury(node);
  while (dead != nullptr) {
    Node* corpse = std::exchange(dead, dead->next_);
    for (uint32_t i = 0; i < corpse->num_operands_; ++i) {
      Node* operand = std::exchange(corpse->operands_[i].node_, nullptr);
      if (operand != nullptr && --operand->references_ == 0) bury(operand);
    }
    delete corpse;
  }
}

const Layout* intern_layout(const Dims& sizes, const Dims& strides) {
  static auto* layouts = new std::map<std::pair<Dims, Dims>, std::unique_ptr<Layout>>();
  Dims order;
  for (size_t i = 0; i < sizes.size(); ++i) order.push_back(static_cast<int64_t>(i));
  // Size-1 dimensions may have any stride; keeping them in place keeps "row-major" recognisable.
  Dims effective = strides;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) effective[i] = i + 1 < sizes.size() ? effective[i + 1] * sizes[i + 1] : 1;
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return effective[a] > effective[b]; });
  if (std::is_sorted(order.begin(), order.end())) return nullptr;
  auto& slot = (*layouts)[{sizes, strides}];
  if (!slot) slot = std::make_unique<Layout>(Layout{sizes, strides, order});
  return slot.get();
}

Buffer::~Buffer() {
  if (is_linked_) unlink();
  if (value_.is_data()) --value_.node()->num_holders_;
}

void Buffer::unlink() {
  (previous_ == nullptr ? graph_->first_buffer_ : previous_->next_) = next_;
  (next_ == nullptr ? graph_->last_buffer_ : next_->previous_) = previous_;
  previous_ = next_ = nullptr;
  is_linked_ = false;
}

// What initialises a parameter may take several operators. After the backward, what is done with the zeros of an
// optimizer's state is the step itself.
void Buffer::note_initial_value(const Node& next) {
  const bool had_data = previous_leaf_ != nullptr;
  const bool is_known = initial_value_.first != nullptr;
  if (had_data || is_known || !value_ || !value_.node()->is_constant()) return;
  if (next.is_constant() && !graph_->is_after_backward()) return;
  initial_value_ = {value_.node(), value_.index()};
  graph_->has_initial_values_ = true;
}

void Buffer::set(Value value, const Layout* layout) {
  if (value_.is_data()) {
    --value_.node()->num_holders_;
    previous_leaf_ = value_.node();
  }
  const bool is_pending = value && !value.is_data();
  if (is_pending) note_initial_value(*value.node());
  if (value.is_data()) {
    ++value.node()->num_holders_;
    previous_leaf_ = nullptr;
    initial_value_ = {};
  }
  value_ = std::move(value);
  layout_ = layout;
  // Kept in the order in which the buffers last became pending, so that equal programs list their outputs equally.
  if (is_linked_) unlink();
  if (!is_pending) return;
  previous_ = graph_->last_buffer_;
  next_ = nullptr;
  (previous_ == nullptr ? graph_->first_buffer_ : previous_->next_) = this;
  graph_->last_buffer_ = this;
  is_linked_ = true;
}

}  // namespace torch_pjrt::lazy
