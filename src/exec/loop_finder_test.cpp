#include "exec/loop_finder.h"

#include <gtest/gtest.h>

#include <vector>

namespace torch_pjrt {
namespace {

constexpr uint64_t kPlace = 7;

class LoopFinderUse : public testing::Test {
 protected:
  // Records a round of `length` operators, the first of kind `first`; whether to cut after it.
  bool round(uint64_t length, uint64_t first = 1, size_t num_live = 3, uint64_t place = kPlace, size_t growth = 0) {
    for (uint64_t i = 0; i < length; ++i) finder_.add(i == 0 ? first : 1000 + i);
    const bool wanted = finder_.visit(place, [&] { return num_live; }, growth);
    if (wanted) finder_.cut();
    return wanted;
  }
  std::vector<bool> rounds(int count, uint64_t length) {
    std::vector<bool> result;
    for (int i = 0; i < count; ++i) result.push_back(round(length));
    return result;
  }

  LoopFinder finder_;
};

TEST_F(LoopFinderUse, cuts_each_round_once_it_has_repeated) {
  EXPECT_EQ(rounds(6, 300), (std::vector<bool>{false, false, false, true, true, true}));
}

TEST_F(LoopFinderUse, short_rounds_are_cut_together) {
  EXPECT_EQ(rounds(10, 100), (std::vector<bool>{0, 0, 0, 1, 0, 0, 1, 0, 0, 1}));
}

TEST_F(LoopFinderUse, operators_that_differ_are_no_loop) {
  for (uint64_t i = 0; i < 10; ++i) EXPECT_FALSE(round(300, i));
  for (uint64_t i = 0; i < 10; ++i) EXPECT_FALSE(round(300 + i));
}

TEST_F(LoopFinderUse, places_that_differ_are_no_loop) {
  for (uint64_t i = 0; i < 10; ++i) EXPECT_FALSE(round(300, 1, 3, i));
}

TEST_F(LoopFinderUse, growing_state_is_no_loop_unless_allowed) {
  for (size_t i = 0; i < 10; ++i) EXPECT_FALSE(round(300, 1, i));
  bool is_found = false;
  for (size_t i = 0; i < 6; ++i) is_found = round(300, 1, i, kPlace + 1, 1) || is_found;
  EXPECT_TRUE(is_found);
}

TEST_F(LoopFinderUse, a_program_that_cuts_itself_is_left_alone) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(round(300));
    finder_.cut_elsewhere();
  }
}

TEST_F(LoopFinderUse, a_known_loop_stays_known_after_an_interruption) {
  rounds(5, 300);
  round(40, 2, 9, kPlace + 1);
  finder_.cut_elsewhere();
  EXPECT_TRUE(round(300));
  EXPECT_TRUE(round(300));
}

}  // namespace
}  // namespace torch_pjrt
