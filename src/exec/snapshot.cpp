#include "exec/snapshot.h"

#include <bit>
#include <unordered_set>

#include "base/error.h"
#include "base/type_hash.h"

namespace torch_pjrt {
namespace {

void add_parameter(lazy::Node& leaf, uint64_t pass, Snapshot& snapshot) {
  TP_CHECK(leaf.is_data(), "an operand is recorded after its use");
  leaf.pass = pass;
  leaf.position = static_cast<uint32_t>(snapshot.parameters.size()) | kParameterBit;
  const bool is_donated = leaf.num_holders() == 0;
  snapshot.parameters.push_back(&leaf);
  snapshot.donated.push_back(is_donated);
  mix(snapshot.hash, leaf.data()->type());
  snapshot.hash.mix(is_donated);
}

}  // namespace

void add_slots(const lazy::Node& node, Snapshot& snapshot) {
  const auto slots = node.slots();
  const auto& is_int = node.signature().slot_is_int;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (is_int[i]) {
      snapshot.integers.push_back(std::bit_cast<int64_t>(slots[i]));
    } else {
      snapshot.reals.push_back(std::bit_cast<double>(slots[i]));
    }
  }
}

namespace {

void clear(Snapshot& snapshot, int device) {
  snapshot.device = device;
  snapshot.nodes.clear();
  snapshot.parameters.clear();
  snapshot.donated.clear();
  snapshot.integers.clear();
  snapshot.reals.clear();
  snapshot.buffers.clear();
  snapshot.values.clear();
  snapshot.hash = Hash128();
}

void add_node(const lazy::Node& node, uint64_t pass, Snapshot& snapshot) {
  snapshot.hash.mix(node.signature().hash);
  for (const lazy::Value& operand : node.operands()) {
    lazy::Node& source = *operand.node();
    if (source.pass != pass) add_parameter(source, pass, snapshot);
    snapshot.hash.mix(uint64_t{source.position} << 32 | operand.index());
  }
  node.pass = pass;
  node.position = static_cast<uint32_t>(snapshot.nodes.size());
  snapshot.nodes.push_back(&node);
  add_slots(node, snapshot);
}

void add_buffer(lazy::Buffer& buffer, Snapshot& snapshot) {
  const OutputRef ref{buffer.value().node()->position, buffer.value().index()};
  snapshot.buffers.push_back(&buffer);
  snapshot.values.push_back(ref);
  snapshot.hash.mix(uint64_t{ref.node} << 32 | ref.index);
}

// The pending nodes that the buffers' values need, their own included.
std::unordered_set<const lazy::Node*> pending_sources(std::span<lazy::Buffer* const> buffers) {
  std::vector<const lazy::Node*> open;
  for (const lazy::Buffer* buffer : buffers) open.push_back(buffer->value().node());
  std::unordered_set<const lazy::Node*> needed(open.begin(), open.end());
  while (!open.empty()) {
    const lazy::Node* next = open.back();
    open.pop_back();
    for (const lazy::Value& operand : next->operands()) {
      const lazy::Node* source = operand.node();
      if (!source->is_data() && needed.insert(source).second) open.push_back(source);
    }
  }
  return needed;
}

void take_snapshot_of(lazy::Graph& graph, std::span<lazy::Buffer* const> buffers,
                      std::span<const lazy::Node* const> nodes, Snapshot& snapshot) {
  clear(snapshot, graph.device());
  const uint64_t pass = graph.next_pass();
  const auto needed = pending_sources(buffers);
  for (const lazy::Node* node : nodes) {
    if (needed.contains(node)) add_node(*node, pass, snapshot);
  }
  for (lazy::Buffer* buffer : buffers) add_buffer(*buffer, snapshot);
  // What stays pending may read them too. The hash says otherwise of some, so it says this as well.
  snapshot.donated.assign(snapshot.donated.size(), false);
  snapshot.hash.mix(std::string_view("nothing is donated"));
}

}  // namespace

void take_snapshot(lazy::Graph& graph, Snapshot& snapshot) {
  clear(snapshot, graph.device());
  const uint64_t pass = graph.next_pass();
  for (const lazy::Node* node = graph.first(); node != nullptr; node = lazy::Graph::next(node)) {
    add_node(*node, pass, snapshot);
  }
  for (lazy::Buffer* buffer = graph.first_buffer(); buffer != nullptr; buffer = buffer->next_pending()) {
    add_buffer(*buffer, snapshot);
  }
}

void take_snapshot_of(lazy::Graph& graph, std::span<lazy::Buffer* const> buffers, Snapshot& snapshot) {
  std::vector<const lazy::Node*> nodes;
  for (const lazy::Node* node = graph.first(); node != nullptr; node = lazy::Graph::next(node)) nodes.push_back(node);
  take_snapshot_of(graph, buffers, nodes, snapshot);
}

void take_snapshot_of(lazy::Buffer& buffer, Snapshot& snapshot) {
  lazy::Buffer* const wanted = &buffer;
  take_snapshot_of(buffer.graph(), {&wanted, 1}, snapshot);
}

void take_snapshot_of(lazy::Buffer& buffer, std::span<const lazy::Node* const> nodes, Snapshot& snapshot) {
  lazy::Buffer* const wanted = &buffer;
  take_snapshot_of(buffer.graph(), {&wanted, 1}, nodes, snapshot);
}

}  // namespace torch_pjrt
