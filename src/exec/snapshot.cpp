#include "exec/snapshot.h"

#include <bit>

#include "base/error.h"
#include "base/type_hash.h"

namespace torch_pjrt {
namespace {

void add_parameter(const lazy::Node& leaf, uint64_t pass, Snapshot& snapshot) {
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

void take_snapshot(lazy::Graph& graph, Snapshot& snapshot) {
  snapshot.device = graph.device();
  snapshot.nodes.clear();
  snapshot.parameters.clear();
  snapshot.donated.clear();
  snapshot.integers.clear();
  snapshot.reals.clear();
  snapshot.buffers.clear();
  snapshot.values.clear();
  snapshot.hash = Hash128();
  const uint64_t pass = graph.next_pass();
  for (const lazy::Node* node = graph.first(); node != nullptr; node = lazy::Graph::next(node)) {
    snapshot.hash.mix(node->signature().hash);
    for (const lazy::Value& operand : node->operands()) {
      const lazy::Node& source = *operand.node();
      if (source.pass != pass) add_parameter(source, pass, snapshot);
      snapshot.hash.mix(uint64_t{source.position} << 32 | operand.index());
    }
    node->pass = pass;
    node->position = static_cast<uint32_t>(snapshot.nodes.size());
    snapshot.nodes.push_back(node);
    add_slots(*node, snapshot);
  }
  for (lazy::Buffer* buffer = graph.first_buffer(); buffer != nullptr; buffer = buffer->next_pending()) {
    const OutputRef ref{buffer->value().node()->position, buffer->value().index()};
    snapshot.buffers.push_back(buffer);
    snapshot.values.push_back(ref);
    snapshot.hash.mix(uint64_t{ref.node} << 32 | ref.index);
  }
}

}  // namespace torch_pjrt
