// What runs that may fail were made from.
//
// When an operator throws inside a program (an ATen kernel that is called there), the plugin loses everything that the
// program computes. So such a run, and every run that reads its results before it is known to have succeeded, donates
// nothing and keeps its operators and inputs until then. A value that was lost is computed again, alone, when somebody
// wants it: what does not depend on the operator that threw is there, and what does gives its error at each read.
//
// Callers hold lazy::mutex().
#pragma once

#include <cstdint>
#include <vector>

#include "exec/run_outcome.h"
#include "exec/snapshot.h"
#include "lazy/node.h"

namespace torch_pjrt {

// Of the run that computed this value on a device; null where none is tracked.
const Ref<RunOutcome>& outcome_of(const lazy::Node& leaf);

// The outcome for a run of `snapshot`; null for one that does not fail. `can_fail` and `has_checks` as in RunOutcome.
Ref<RunOutcome> make_outcome(const Snapshot& snapshot, bool can_fail, bool has_checks);

// Copies of the operators of one run.
class KeptRun {
 public:
  // While the snapshot is good. `leaves[outputs[i]]` holds the result for `snapshot.buffers[i]`.
  KeptRun(const Snapshot& snapshot, const std::vector<lazy::Value>& leaves, const std::vector<uint32_t>& outputs,
          Ref<RunOutcome> outcome);
  KeptRun(const KeptRun&) = delete;
  KeptRun& operator=(const KeptRun&) = delete;
  ~KeptRun();

  // In topological order.
  std::vector<const lazy::Node*> nodes() const;
  // What computes `leaf`; null for another run's.
  lazy::Value source_of(const lazy::Node& leaf) const;
  // Whether some value may yet have to be computed again.
  bool is_needed() const;

 private:
  struct Result {
    lazy::Value leaf;
    lazy::Value source;
  };
  std::vector<lazy::Value> nodes_;  // each stands for its node
  std::vector<lazy::Node*> inputs_;
  std::vector<Result> results_;
  const Ref<RunOutcome> outcome_;
};

void keep_run(const Snapshot& snapshot, const std::vector<lazy::Value>& leaves, const std::vector<uint32_t>& outputs,
              Ref<RunOutcome> outcome);
// The run that computes `leaf`; nullptr when it was not kept. Valid until the next of the other calls here.
const KeptRun* find_kept_run(const lazy::Node& leaf);
bool has_kept_runs();
// Forgets the runs that succeeded, and the failed ones whose values nobody holds any more.
void release_kept_runs();

}  // namespace torch_pjrt
