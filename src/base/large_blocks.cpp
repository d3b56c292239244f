#include "base/large_blocks.h"

#include <sys/mman.h>

#include <algorithm>

namespace torch_pjrt {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kGranule = size_t{64} << 10;
// From this size on what the last huge page has too much is small against the block.
constexpr size_t kSmallestOfHugePages = 8 * kHugePage;
// A block may serve a request that is smaller by a part of so many.
constexpr size_t kTolerance = 8;
constexpr int kPeriod = 4096;

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

size_t block_size(size_t size_bytes) {
  return round_up(size_bytes, size_bytes >= kSmallestOfHugePages ? kHugePage : kGranule);
}

void* map_pages(size_t size_bytes) {
  void* pages = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

// Huge pages need a block that begins at one: what is mapped too much before and after goes back.
void* map_huge_pages(size_t size_bytes) {
  auto* pages = static_cast<char*>(map_pages(size_bytes + kHugePage));
  if (pages == nullptr) return nullptr;
  const size_t before = round_up(reinterpret_cast<uintptr_t>(pages), kHugePage) - reinterpret_cast<uintptr_t>(pages);
  if (before > 0) munmap(pages, before);
  munmap(pages + before + size_bytes, kHugePage - before);
  madvise(pages + before, size_bytes, MADV_HUGEPAGE);  // a system without them refuses, and all is as before
  return pages + before;
}

}  // namespace

void* LargeBlocks::allocate(size_t size_bytes) {
  const size_t size = block_size(size_bytes);
  const std::lock_guard lock(mutex_);
  void* pointer = take_waiting(size);
  if (pointer == nullptr) {
    // Blocks of other sizes make room, so that what waits never makes the process larger.
    const size_t needed = statistics_.bytes_in_use + size;
    keep_within(std::max({peak_, last_peak_, needed}) - needed);
    pointer = size >= kSmallestOfHugePages ? map_huge_pages(size) : map_pages(size);
    if (pointer == nullptr) return nullptr;
    in_use_.emplace(pointer, size);
    statistics_.bytes_in_use += size;
    ++statistics_.num_mapped;
  }
  note_use();
  return pointer;
}

bool LargeBlocks::free(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto block = in_use_.find(pointer);
  if (block == in_use_.end()) return false;
  const size_t size = block->second;
  in_use_.erase(block);
  statistics_.bytes_in_use -= size;
  statistics_.bytes_waiting += size;
  waiting_by_size_.emplace(size, waiting_.insert(waiting_.end(), {pointer, size}));
  const size_t most = std::max(peak_, last_peak_);
  keep_within(most - std::min(most, statistics_.bytes_in_use));
  return true;
}

size_t LargeBlocks::usable_size(void* pointer) const {
  const std::lock_guard lock(mutex_);
  const auto block = in_use_.find(pointer);
  return block == in_use_.end() ? 0 : block->second;
}

void LargeBlocks::release() {
  const std::lock_guard lock(mutex_);
  keep_within(0);
}

LargeBlocks::Statistics LargeBlocks::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void* LargeBlocks::take_waiting(size_t size_bytes) {
  const auto found = waiting_by_size_.lower_bound(size_bytes);
  if (found == waiting_by_size_.end() || found->first > size_bytes + size_bytes / kTolerance) return nullptr;
  const auto [pointer, size] = *found->second;
  waiting_.erase(found->second);
  waiting_by_size_.erase(found);
  in_use_.emplace(pointer, size);
  statistics_.bytes_waiting -= size;
  statistics_.bytes_in_use += size;
  ++statistics_.num_reused;
  return pointer;
}

void LargeBlocks::unmap(Waiting::iterator block) {
  const auto [first, last] = waiting_by_size_.equal_range(block->size_bytes);
  waiting_by_size_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == block; }));
  statistics_.bytes_waiting -= block->size_bytes;
  munmap(block->pointer, block->size_bytes);
  waiting_.erase(block);
}

void LargeBlocks::keep_within(size_t bytes) {
  while (statistics_.bytes_waiting > bytes) unmap(waiting_.begin());
}

void LargeBlocks::note_use() {
  peak_ = std::max(peak_, statistics_.bytes_in_use);
  if (++period_ < kPeriod) return;
  period_ = 0;
  last_peak_ = peak_;
  peak_ = statistics_.bytes_in_use;
}

}  // namespace torch_pjrt
