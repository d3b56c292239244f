#include "exec/loop_finder.h"

namespace torch_pjrt {
namespace {

uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if ((exponent & 1) != 0) result *= base;
  }
  return result;
}

}  // namespace

void LoopFinder::cut_elsewhere() {
  last_cut_ = position_;
  std::erase_if(places_, [](const auto& item) { return !item.second.is_loop; });
}

LoopFinder::Place& LoopFinder::find(uint64_t place) {
  if (places_.size() >= kMaxPlaces && !places_.contains(place)) places_.clear();
  return places_[place];
}

bool LoopFinder::note_round(Place& at) const {
  const uint64_t length = position_ - at.position;
  const uint64_t window = hash_ - at.hash * power(kBase, length);
  const bool is_equal = at.is_visited && length == at.length && window == at.window;
  at.rounds = is_equal ? at.rounds + 1 : 0;
  at.length = at.is_visited ? length : 0;
  at.window = window;
  at.position = position_;
  at.hash = hash_;
  at.is_visited = true;
  return is_equal;
}

}  // namespace torch_pjrt
