// Printing the recorded graph for people.
#pragma once

#include <string>
#include <vector>

#include "exec/snapshot.h"

namespace torch_pjrt {

// What the next cut would run to compute `values`, which are pending or device data. Caller holds the lock.
struct Subgraph {
  Snapshot snapshot;
  // Roots in the order asked for; device data has the parameter bit set in `node`.
  std::vector<OutputRef> roots;
};
Subgraph take_subgraph(lazy::Graph& graph, const std::vector<lazy::Value>& values);

// Types of a call's results with their layouts: "f32[4,3]{1,0}", of several results "(f32[4,3]{1,0}, s64[4]{0})".
std::string result_text(const lazy::Signature& signature);

// One node a line: `%2 = f32[4,3]{1,0} aten::mm(%0, %1), ROOT=0`.
std::string to_text(const Subgraph& subgraph);
// The StableHLO module of the pending part.
std::string to_stablehlo(const Subgraph& subgraph);
// A Graphviz digraph.
std::string to_dot(const Subgraph& subgraph);

// Appends a graph that is about to be compiled to the file XLA_SAVE_TENSORS_FILE, if that is set, in the form
// XLA_SAVE_TENSORS_FMT: text (default), hlo or dot. Throws when the file cannot be written.
void save_graph(const Snapshot& snapshot);

}  // namespace torch_pjrt
