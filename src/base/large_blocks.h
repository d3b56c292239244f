// Large blocks of host memory that are used again, with their pages, instead of going back to the system.
//
// XLA CPU takes the temporaries of a program as one block and frees it after each run. The C library maps a block above
// 32 MB anew each time (and on threads other than the first it gives smaller ones back too), so that the system zeroes
// and maps each page in each step: a tenth of a training step and more. Here a freed block waits for the next of its
// size.
//
// What waits costs no memory that was not needed before: blocks in use and blocks that wait are together never more
// than were lately in use at one time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <unordered_map>

namespace torch_pjrt {

// Thread safe.
class LargeBlocks {
 public:
  // Below this size the C library reuses memory well.
  static constexpr size_t kSmallest = size_t{1} << 20;
  // Every block begins at a multiple of this.
  static constexpr size_t kAlignment = 4096;

  struct Statistics {
    size_t bytes_in_use = 0, bytes_waiting = 0;
    int64_t num_mapped = 0, num_reused = 0;  // since the start
  };

  // At least `size_bytes` of memory, not zeroed; null when the system has no more.
  void* allocate(size_t size_bytes);
  // False, and nothing is done, when `pointer` is no block that is in use.
  bool free(void* pointer);
  // The size of a block that is in use, else 0.
  size_t usable_size(void* pointer) const;
  // Gives all blocks that wait back to the system.
  void release();
  Statistics statistics() const;

  // A forked child must find no lock held by a thread that it does not have.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  struct Block {
    void* pointer;
    size_t size_bytes;
  };
  using Waiting = std::list<Block>;  // those freed first are in front

  void* take_waiting(size_t size_bytes);
  void unmap(Waiting::iterator block);
  void keep_within(size_t bytes);
  void note_use();

  mutable std::mutex mutex_;
  std::unordered_map<void*, size_t> in_use_;
  Waiting waiting_;
  std::multimap<size_t, Waiting::iterator> waiting_by_size_;
  Statistics statistics_;
  // The most bytes in use at one time, in this and in the last period of so many allocations.
  size_t peak_ = 0, last_peak_ = 0;
  int period_ = 0;
};

}  // namespace torch_pjrt
