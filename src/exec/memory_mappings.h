// Memory mappings, of which Linux gives a process 65,530 (vm.max_map_count). XLA's CPU compiler maps each object file
// by itself: a program of a few operators takes 3, that of a training step some hundreds. Where mmap fails for want of
// one, LLVM ends the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace torch_pjrt {

// XLA_MAX_MEMORY_MAPPINGS, else what the system allows; 0 where neither says.
int64_t max_memory_mappings();
// Those of the process now, in about half a microsecond each.
int64_t count_memory_mappings();

// Keeps what the programs in memory map within a share of the limit. Not thread safe.
class MappingBudget {
 public:
  // A `limit` of 0 or less bounds nothing.
  MappingBudget(int64_t limit, std::function<int64_t()> count) : limit_(limit), count_(std::move(count)) {}

  // To be called before a program is compiled or loaded. When `size()` programs map more than kMostUsed of the limit,
  // calls `evict(n)`, which drops the n least recently used of them, until kUsedAfterEviction is left, or
  // `min_programs` programs are: what else maps memory may take the share by itself. Counts seldom: not before as many
  // programs were added as could reach the limit.
  void make_room(size_t min_programs, const std::function<size_t()>& size, const std::function<void(size_t)>& evict);

  static constexpr double kMostUsed = 0.6;  // what libraries, threads and tensors map has room beside it
  static constexpr double kUsedAfterEviction = 0.5;

 private:
  const int64_t limit_;
  const std::function<int64_t()> count_;
  int64_t calls_until_count_ = 0;
};

}  // namespace torch_pjrt
