#include "base/large_blocks.h"

#include <gtest/gtest.h>

#include <cstring>

namespace torch_pjrt {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

size_t bytes_held(const LargeBlocks& blocks) {
  const LargeBlocks::Statistics statistics = blocks.statistics();
  return statistics.bytes_in_use + statistics.bytes_waiting;
}

TEST(LargeBlocks, a_freed_block_serves_the_next_request_of_its_size) {
  LargeBlocks blocks;
  for (const size_t size : {kMegabyte, 5 * kMegabyte + 1, 40 * kMegabyte + 100}) {
    void* first = blocks.allocate(size);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % LargeBlocks::kAlignment, 0u);
    EXPECT_GE(blocks.usable_size(first), size);
    std::memset(first, 1, size);
    EXPECT_TRUE(blocks.free(first));
    EXPECT_EQ(blocks.usable_size(first), 0u);
    void* second = blocks.allocate(size - size / 20);
    EXPECT_EQ(second, first);
    EXPECT_EQ(static_cast<char*>(second)[size / 2], 1);
    EXPECT_TRUE(blocks.free(second));
  }
  EXPECT_EQ(blocks.statistics().num_mapped, 3);
  EXPECT_EQ(blocks.statistics().num_reused, 3);
}

TEST(LargeBlocks, two_requests_never_share_a_block) {
  LargeBlocks blocks;
  EXPECT_TRUE(blocks.free(blocks.allocate(4 * kMegabyte)));
  void* first = blocks.allocate(4 * kMegabyte);
  void* second = blocks.allocate(4 * kMegabyte);
  std::memset(first, 1, 4 * kMegabyte);
  std::memset(second, 2, 4 * kMegabyte);
  EXPECT_EQ(static_cast<char*>(first)[4 * kMegabyte - 1], 1);
  EXPECT_TRUE(blocks.free(first));
  EXPECT_TRUE(blocks.free(second));
}

TEST(LargeBlocks, a_much_smaller_request_does_not_take_a_block) {
  LargeBlocks blocks;
  void* large = blocks.allocate(64 * kMegabyte);
  EXPECT_TRUE(blocks.free(large));
  EXPECT_NE(blocks.allocate(8 * kMegabyte), large);
}

TEST(LargeBlocks, what_waits_takes_no_more_than_was_in_use_at_one_time) {
  LargeBlocks blocks;
  EXPECT_TRUE(blocks.free(blocks.allocate(64 * kMegabyte)));
  EXPECT_EQ(bytes_held(blocks), 64 * kMegabyte);
  for (int i = 0; i < 10; ++i) {
    void* small = blocks.allocate(8 * kMegabyte);
    void* large = blocks.allocate((20 + 8 * i) * kMegabyte);
    const size_t in_use = blocks.statistics().bytes_in_use;
    EXPECT_LE(bytes_held(blocks), std::max(64 * kMegabyte, in_use));
    EXPECT_TRUE(blocks.free(small));
    EXPECT_TRUE(blocks.free(large));
    EXPECT_LE(bytes_held(blocks), std::max(64 * kMegabyte, in_use));
  }
}

TEST(LargeBlocks, an_old_peak_is_forgotten) {
  LargeBlocks blocks;
  EXPECT_TRUE(blocks.free(blocks.allocate(64 * kMegabyte)));
  for (int i = 0; i < 10000; ++i) EXPECT_TRUE(blocks.free(blocks.allocate(2 * kMegabyte)));
  EXPECT_EQ(bytes_held(blocks), 2 * kMegabyte);
}

TEST(LargeBlocks, release_gives_back_what_waits) {
  LargeBlocks blocks;
  void* kept = blocks.allocate(3 * kMegabyte);
  EXPECT_TRUE(blocks.free(blocks.allocate(20 * kMegabyte)));
  blocks.release();
  EXPECT_EQ(blocks.statistics().bytes_waiting, 0u);
  EXPECT_EQ(blocks.usable_size(kept), 3 * kMegabyte);
}

TEST(LargeBlocks, a_foreign_pointer_is_left_alone) {
  LargeBlocks blocks;
  int other = 0;
  EXPECT_FALSE(blocks.free(&other));
  EXPECT_FALSE(blocks.free(nullptr));
}

}  // namespace
}  // namespace torch_pjrt
