#include "exec/kept_runs.h"

#include <algorithm>
#include <list>
#include <utility>

#include "exec/device_value.h"
#include "lazy/graph.h"

namespace torch_pjrt {
namespace {

std::list<KeptRun>& kept_runs() {
  // Leaked: values outlive static destruction.
  static auto* runs = new std::list<KeptRun>();
  return *runs;
}

void add_source(const Ref<RunOutcome>& source, std::vector<Ref<RunOutcome>>& sources) {
  const bool is_known =
      std::any_of(sources.begin(), sources.end(), [&](const auto& known) { return known.get() == source.get(); });
  if (!is_known && !source->is_sound()) sources.push_back(source);
}

}  // namespace

const Ref<RunOutcome>& outcome_of(const lazy::Node& leaf) {
  return static_cast<const DeviceValue&>(*leaf.data()).outcome();
}

Ref<RunOutcome> make_outcome(const Snapshot& snapshot, bool can_fail, bool has_checks) {
  std::vector<Ref<RunOutcome>> sources;
  for (const lazy::Node* leaf : snapshot.parameters) {
    const Ref<RunOutcome>& outcome = outcome_of(*leaf);
    if (!outcome || outcome->is_sound()) continue;
    // Those that can fail by themselves: a loop over sound programs does not grow a chain, and is sound when they are.
    if (outcome->can_fail() || outcome->has_failed()) {
      add_source(outcome, sources);
    } else {
      for (const Ref<RunOutcome>& source : outcome->sources()) add_source(source, sources);
    }
  }
  if (!can_fail && sources.empty()) return {};
  return make_ref<RunOutcome>(can_fail, std::move(sources), has_checks);
}

KeptRun::KeptRun(const Snapshot& snapshot, const std::vector<lazy::Value>& leaves, const std::vector<uint32_t>& outputs,
                 Ref<RunOutcome> outcome)
    : inputs_(snapshot.parameters), outcome_(std::move(outcome)) {
  for (lazy::Node* leaf : inputs_) ++leaf->num_keepers;
  nodes_.reserve(snapshot.nodes.size());
  std::vector<lazy::Value> operands;
  for (const lazy::Node* node : snapshot.nodes) {
    operands.clear();
    for (const lazy::Value& operand : node->operands()) {
      const bool is_input = (operand.node()->position & kParameterBit) != 0;
      operands.push_back(is_input ? operand : lazy::Value(nodes_[operand.node()->position].node(), operand.index()));
    }
    nodes_.push_back(lazy::Graph::copy(*node, operands));
  }
  std::vector<bool> is_known(leaves.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_known[outputs[i]]) continue;
    is_known[outputs[i]] = true;
    const OutputRef& source = snapshot.values[i];
    results_.push_back({leaves[outputs[i]], lazy::Value(nodes_[source.node].node(), source.index)});
  }
}

KeptRun::~KeptRun() {
  for (lazy::Node* leaf : inputs_) --leaf->num_keepers;
}

std::vector<const lazy::Node*> KeptRun::nodes() const {
  std::vector<const lazy::Node*> nodes;
  for (const lazy::Value& value : nodes_) nodes.push_back(value.node());
  return nodes;
}

lazy::Value KeptRun::source_of(const lazy::Node& leaf) const {
  for (const Result& result : results_) {
    if (result.leaf.node() == &leaf) return result.source;
  }
  return {};
}

bool KeptRun::is_needed() const {
  if (!outcome_->has_failed()) return !outcome_->is_sound();
  return std::any_of(results_.begin(), results_.end(), [](const Result& result) {
    const lazy::Node& leaf = *result.leaf.node();
    const Ref<RunOutcome>& outcome = outcome_of(leaf);  // of the run that computed it last
    return leaf.num_references() > 1 && outcome && !outcome->is_sound();
  });
}

void keep_run(const Snapshot& snapshot, const std::vector<lazy::Value>& leaves, const std::vector<uint32_t>& outputs,
              Ref<RunOutcome> outcome) {
  kept_runs().emplace_back(snapshot, leaves, outputs, std::move(outcome));
}

const KeptRun* find_kept_run(const lazy::Node& leaf) {
  for (const KeptRun& run : kept_runs()) {
    if (run.source_of(leaf)) return &run;
  }
  return nullptr;
}

bool has_kept_runs() { return !kept_runs().empty(); }

void release_kept_runs() {
  // The newest first: it may be what holds a value of an older one.
  auto& runs = kept_runs();
  for (auto it = runs.end(); it != runs.begin();) {
    --it;
    if (!it->is_needed()) it = runs.erase(it);
  }
}

}  // namespace torch_pjrt
