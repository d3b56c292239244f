// Why a graph had to be compiled: the structure of the programs compiled so far, and the first difference in words.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/snapshot.h"
#include "lazy/source_location.h"

namespace torch_pjrt {

// The structure of a graph, kept after its nodes are gone. Schemas live for the process.
struct GraphSummary {
  struct Node {
    const lazy::Signature* signature = nullptr;
    lazy::LocationId location = 0;
    uint32_t region = 0;         // rematerialisation region, 0 for none
    uint32_t first_operand = 0;  // into `operands`; the next node's is the end
  };
  std::vector<Node> nodes;
  // Copies of the recorder's signatures, which may be dropped before: what the nodes point to.
  std::vector<std::shared_ptr<const lazy::Signature>> signatures;
  // Of all nodes; `node` is a position in `nodes`, or with kParameterBit one in `parameters`.
  std::vector<OutputRef> operands;
  std::vector<TensorType> parameters;
  std::vector<bool> donated;       // parallel to `parameters`
  std::vector<OutputRef> outputs;  // values of the pending storages
  // How often each operator occurs, by name.
  std::vector<std::pair<std::string_view, int64_t>> op_counts;

  size_t num_operands(size_t node) const;
};

GraphSummary summarize(const Snapshot& snapshot);
// Fills op_counts; summarize does.
void count_ops(GraphSummary& summary);

// From 0 (no operator in common) to 1 (the same operators, equally often).
double similarity(const GraphSummary& a, const GraphSummary& b);

// The first thing, in recording order, that is not as it was: "`aten::mm` input 0 was [128, 784], is [96, 784], at
// forward@train.py:31". When structure and types agree it must be the compile options.
std::string first_difference(const GraphSummary& before, const GraphSummary& now);

// The largest result in words, for errors about memory: "f32[4096,4096] of `aten::mm`, at forward@train.py:31". Empty
// for a graph without operators.
std::string largest_value(const GraphSummary& graph);

// Summaries of the newest programs: at most kMaxPrograms, and at most kMaxNodes nodes in all. Thread safe.
class GraphHistory {
 public:
  static constexpr size_t kMaxPrograms = 256;
  static constexpr size_t kMaxNodes = size_t{1} << 20;

  static GraphHistory& get();

  void add(int64_t program, std::shared_ptr<const GraphSummary> summary);
  // nullptr when it was dropped.
  std::shared_ptr<const GraphSummary> find(int64_t program) const;
  // Why `now` is a new program, for PT_XLA_DEBUG and the report.
  std::string explain(const GraphSummary& now) const;

 private:
  struct Entry {
    int64_t program;
    std::shared_ptr<const GraphSummary> summary;
  };
  std::optional<Entry> find_nearest(const GraphSummary& now) const;

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // oldest first
  size_t num_nodes_ = 0;
};

}  // namespace torch_pjrt
