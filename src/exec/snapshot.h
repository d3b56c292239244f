// A pending graph flattened for lowering and execution: what a cut hands to the program cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "lazy/buffer.h"
#include "lazy/graph.h"

namespace torch_pjrt {

// A node's output: position in Snapshot::nodes, and which output. A leaf cannot be one.
struct OutputRef {
  uint32_t node = 0;
  uint32_t index = 0;
  auto operator<=>(const OutputRef&) const = default;
};

// Set in lazy::Node::position of a leaf; the other bits are its place among Snapshot::parameters.
inline constexpr uint32_t kParameterBit = 0x80000000u;

// Valid while the lock is held and the graph is unchanged.
struct Snapshot {
  int device = 0;
  std::vector<const lazy::Node*> nodes;  // topological order
  std::vector<lazy::Node*> parameters;   // leaves, by first use
  std::vector<bool> donated;             // for each parameter: no storage holds it any more
  std::vector<int64_t> integers;         // scalar slots of all nodes, in order
  std::vector<double> reals;
  std::vector<lazy::Buffer*> buffers;  // pending storages
  std::vector<OutputRef> values;       // for each of `buffers`
  // Structure, types, outputs and donation: equal hashes run the same program.
  Hash128 hash;
};

// Fills `snapshot` (its vectors keep their capacity). Caller holds the lock; Node::position stays set until the next
// snapshot.
void take_snapshot(lazy::Graph& graph, Snapshot& snapshot);

// The same of one pending buffer and of the nodes that its value needs; nothing is donated.
void take_snapshot_of(lazy::Buffer& buffer, Snapshot& snapshot);
// The same of several pending buffers.
void take_snapshot_of(lazy::Graph& graph, std::span<lazy::Buffer* const> buffers, Snapshot& snapshot);
// The same where those nodes are not the graph's own, but among `nodes`, which are in topological order.
void take_snapshot_of(lazy::Buffer& buffer, std::span<const lazy::Node* const> nodes, Snapshot& snapshot);

// Appends a node's scalars.
void add_slots(const lazy::Node& node, Snapshot& snapshot);

}  // namespace torch_pjrt
