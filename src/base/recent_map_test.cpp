#include "base/recent_map.h"

#include <gtest/gtest.h>

namespace torch_pjrt {
namespace {

Hash128 key_of(int number) {
  Hash128 key;
  key.mix(number);
  return key;
}

TEST(RecentMap, forgets_what_was_not_asked_for) {
  RecentMap<int> map;
  int& one = map.insert(key_of(1), std::make_unique<int>(1));
  map.insert(key_of(2), std::make_unique<int>(2));
  EXPECT_EQ(&map.insert(key_of(1), std::make_unique<int>(10)), &one);
  EXPECT_EQ(map.size(), 2u);
  map.forget();
  EXPECT_EQ(map.num_young(), 0u);
  EXPECT_EQ(map.find(key_of(1)), &one);
  map.forget();
  EXPECT_EQ(map.find(key_of(2)), nullptr);
  EXPECT_EQ(map.find(key_of(1)), &one);
  EXPECT_EQ(one, 1);
  map.forget();
  map.forget();
  EXPECT_EQ(map.size(), 0u);
}

TEST(RecentMap, an_old_entry_is_not_made_again) {
  RecentMap<int> map;
  int& one = map.insert(key_of(1), std::make_unique<int>(1));
  map.forget();
  EXPECT_EQ(&map.insert(key_of(1), std::make_unique<int>(10)), &one);
  EXPECT_EQ(map.size(), 1u);
}

}  // namespace
}  // namespace torch_pjrt
