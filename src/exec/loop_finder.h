// Recognises a program that records the same operators again and again, and where in each round to cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace torch_pjrt {

// Told of every operator recorded on one device, and of the places in between that may bound a round: an operator that
// changed a long-lived storage, an upload. A place bounds a loop when it was met four times, the operators between the
// visits were the same ones, and no more storages were pending at the fourth visit than at the third. Not thread safe.
class LoopFinder {
 public:
  // A program that short is not worth its launch: short rounds are cut several at a time.
  static constexpr uint64_t kMinNodes = 256;

  // An operator was recorded. `signature` identifies operator, types and attributes.
  void add(uint64_t signature) {
    hash_ = hash_ * kBase + signature;
    ++position_;
  }

  // After the newest operator the program is at `place`. `num_live` counts the pending storages, and is asked when it
  // matters; it may grow by `max_growth` a round. True when this bounds a round of a loop, and enough was recorded
  // since the last cut.
  template <typename Count>
  bool visit(uint64_t place, Count&& num_live, size_t max_growth = 0) {
    Place& at = find(place);
    if (note_round(at)) {
      const size_t live = num_live();
      at.is_loop = at.is_loop || (at.rounds >= 2 && live >= at.num_live && live - at.num_live <= max_growth);
      at.num_live = live;
    }
    return at.is_loop && position_ - last_cut_ >= kMinNodes;
  }

  // The graph was cut at a place that `visit` told.
  void cut() { last_cut_ = position_; }
  // The graph was cut by something else: a program that does so itself in each round needs no cut of ours.
  void cut_elsewhere();

 private:
  static constexpr uint64_t kBase = 0x9e3779b97f4a7c15;  // odd, so that no operator's contribution vanishes
  static constexpr size_t kMaxPlaces = 4096;

  // Positions and hashes at the newest visit; `window` is the hash of the operators of the round before it.
  struct Place {
    uint64_t position = 0;
    uint64_t hash = 0;
    uint64_t length = 0;
    uint64_t window = 0;
    int rounds = 0;  // that were equal to the one before
    size_t num_live = 0;
    bool is_visited = false;
    bool is_loop = false;
  };

  Place& find(uint64_t place);
  // Whether the round that ends here equals the one before.
  bool note_round(Place& at) const;

  uint64_t hash_ = 0;
  uint64_t position_ = 0;
  uint64_t last_cut_ = 0;
  std::unordered_map<uint64_t, Place> places_;
};

}  // namespace torch_pjrt
