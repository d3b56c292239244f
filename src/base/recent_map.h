// A map from 128-bit keys that can forget what was not asked for lately.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "base/hash.h"

namespace torch_pjrt {

// Two generations: what is found or inserted is young; forgetting drops the old generation and makes the young one old.
// Entries keep their address until they are dropped. Not thread safe.
template <typename T>
class RecentMap {
 public:
  T* find(const Hash128& key) {
    const auto it = young_.find(key);
    if (it != young_.end()) [[likely]]
      return it->second.get();
    const auto old = old_.find(key);
    if (old == old_.end()) return nullptr;
    auto node = old_.extract(old);
    return young_.insert(std::move(node)).position->second.get();
  }
  // Keeps an entry that is there already.
  T& insert(const Hash128& key, std::unique_ptr<T> value) {
    if (T* found = find(key)) return *found;
    return *young_.emplace(key, std::move(value)).first->second;
  }
  size_t num_young() const { return young_.size(); }
  size_t size() const { return young_.size() + old_.size(); }
  void forget() {
    old_ = std::move(young_);
    young_.clear();
  }

 private:
  std::unordered_map<Hash128, std::unique_ptr<T>> young_, old_;
};

}  // namespace torch_pjrt
