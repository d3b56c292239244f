// Signatures that are made once and used by every later call of their kind.
#pragma once

#include <memory>
#include <vector>

#include "base/recent_map.h"

namespace torch_pjrt {

// Nodes point to what a memo holds, so entries are dropped only while no graph has nodes. Everything here needs
// lazy::mutex().
class MemoBase {
 public:
  MemoBase(const MemoBase&) = delete;
  MemoBase& operator=(const MemoBase&) = delete;

  // To be called before something is looked up: when a memo has grown to XLA_MEMO_SIZE entries (default 8192) since it
  // last forgot, and nothing is pending, it drops what was not used since.
  static void forget_when_idle() {
    if (any_is_full_) [[unlikely]]
      forget_full_ones();
  }
  // Entries of all memos.
  static size_t num_entries();

 protected:
  MemoBase() { all().push_back(this); }
  ~MemoBase() = default;
  void note_size(size_t num_young);

 private:
  static std::vector<MemoBase*>& all();
  static void forget_full_ones();
  virtual size_t num_young() const = 0;
  virtual size_t size() const = 0;
  virtual void forget() = 0;

  inline static bool any_is_full_ = false;
};

// Lives for the process.
template <typename T>
class Memo final : MemoBase {
 public:
  T* find(const Hash128& key) { return map_.find(key); }
  T& insert(const Hash128& key, std::unique_ptr<T> value) {
    T& inserted = map_.insert(key, std::move(value));
    note_size(map_.num_young());
    return inserted;
  }

 private:
  size_t num_young() const override { return map_.num_young(); }
  size_t size() const override { return map_.size(); }
  void forget() override { map_.forget(); }

  RecentMap<T> map_;
};

}  // namespace torch_pjrt
