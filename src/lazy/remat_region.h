// Rematerialisation: a part of the graph that computes again, during a backward, what the forward computed before.
//
// XLA would merge the second computation with the first and keep its results alive in between, which is what
// checkpointing wants to avoid. So every value that enters a region goes through an optimization barrier together with
// the newest value recorded before it (a gradient): the recomputation is then no common subexpression, and cannot start
// before that gradient exists.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "lazy/node.h"

namespace torch_pjrt::lazy {

class RematRegion {
 public:
  // Records one barrier over the values; results in the same order.
  using RecordBarrier = std::vector<Value> (*)(std::vector<Value> values);

  bool is_active() const { return id_ != 0; }
  // Number of the active region, 0 outside of one. Nodes carry the number of the region they were recorded in.
  uint32_t id() const { return id_; }

  // Starts a region whose values wait for `newest`; without one (nothing is pending) there is nothing to wait for.
  void enter(Value newest);
  // Ends it; the values that it kept are released.
  void leave();
  // What `value` is inside the active region.
  Value admit(const Value& value, RecordBarrier record_barrier);

 private:
  uint32_t id_ = 0;
  uint32_t last_id_ = 0;
  Value newest_;
  std::map<std::pair<const Node*, uint32_t>, std::pair<Value, Value>> admitted_;  // outside value, inside value
};

}  // namespace torch_pjrt::lazy
