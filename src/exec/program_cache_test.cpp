#include "exec/program_cache.h"

#include <gtest/gtest.h>

namespace torch_pjrt {
namespace {

Hash128 key_of(size_t number) {
  Hash128 key;
  key.mix(static_cast<uint64_t>(number));
  return key;
}

CompiledGraph graph_of(int64_t size_bytes) {
  CompiledGraph graph;
  graph.size_bytes = size_bytes;
  return graph;
}

TEST(ProgramCache, drops_the_least_recently_used_beyond_its_capacity) {
  ProgramCache cache(3);
  for (size_t i = 0; i < 3; ++i) cache.insert(key_of(i), graph_of(1));
  EXPECT_NE(cache.find(key_of(0)), nullptr);
  cache.insert(key_of(3), graph_of(1));
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(cache.find(key_of(1)), nullptr);
  EXPECT_NE(cache.find(key_of(0)), nullptr);
  cache.evict(2);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_NE(cache.find(key_of(0)), nullptr);
}

TEST(ProgramCache, drops_programs_for_want_of_memory_but_not_the_last_few) {
  ProgramCache cache(1000);
  cache.set_max_bytes(100 * 10);
  for (size_t i = 0; i < 200; ++i) cache.insert(key_of(i), graph_of(10));
  EXPECT_EQ(cache.size(), 100u);
  cache.insert(key_of(200), graph_of(995));
  EXPECT_EQ(cache.size(), kMinPrograms);
  EXPECT_NE(cache.find(key_of(200)), nullptr);
  cache.clear();
  for (size_t i = 0; i < 50; ++i) cache.insert(key_of(i), graph_of(10));
  EXPECT_EQ(cache.size(), 50u);
}

}  // namespace
}  // namespace torch_pjrt
