#include "lazy/remat_region.h"

namespace torch_pjrt::lazy {

void RematRegion::enter(Value newest) {
  leave();
  if (!newest) return;
  id_ = ++last_id_;
  newest_ = std::move(newest);
}

void RematRegion::leave() {
  id_ = 0;
  newest_ = Value();
  admitted_.clear();
}

Value RematRegion::admit(const Value& value, RecordBarrier record_barrier) {
  if (!is_active() || value.node()->region == id_ || value == newest_) return value;
  auto& [outside, inside] = admitted_[{value.node(), value.index()}];
  if (!inside) {
    // The outside value is held so that its address names it for as long as the region lasts.
    outside = value;
    inside = record_barrier({value, newest_})[0];
  }
  return inside;
}

}  // namespace torch_pjrt::lazy
