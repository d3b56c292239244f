// Programs of their own for the values that storages begin with.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "exec/snapshot.h"
#include "lazy/buffer.h"
#include "lazy/graph.h"

namespace torch_pjrt {

// A first training step may be recorded together with what it starts from: the zeros that an optimizer's state begins
// with, parameters that are initialised on the device. As one program, that step would differ from the second in
// nothing but where those values come from, and both would be compiled. So the values are computed first, by a small
// program, and the first step runs the program of all steps.
//
// They are the values of the pending graph that depend on no data, and that storages held which now hold another
// pending value. Caller holds the lock as long as this lives.
class InitialValues {
 public:
  // Looks for them in the snapshot of all that is pending.
  InitialValues(lazy::Graph& graph, const Snapshot& snapshot);

  bool empty() const { return results_.empty(); }
  size_t size_bytes() const;
  // Uploads those that are zeros, and takes a snapshot of what computes the others and of nothing else, which may be
  // nothing. Other snapshots of the graph are no longer valid.
  void prepare(Snapshot& snapshot);
  // After the program of that snapshot has started: operators take its results.
  void replace();

 private:
  struct Initial {
    lazy::Value value;
    const lazy::Node* update;  // what its storage holds now
    size_t result;             // its place in results_
  };
  struct Storage {
    lazy::Buffer* buffer;
    size_t result;  // what it began with
  };

  size_t result_for(const lazy::Value& value, const lazy::Node* update);
  void upload_zeros();

  lazy::Graph& graph_;
  std::vector<Initial> initials_;
  std::vector<Storage> storages_;
  std::vector<std::unique_ptr<lazy::Buffer>> results_;
};

}  // namespace torch_pjrt
