#include "exec/lower.h"

#include <gtest/gtest.h>

namespace torch_pjrt {
namespace {

Snapshot with_scalars(size_t integers, size_t reals) {
  Snapshot snapshot;
  snapshot.integers.resize(integers);
  snapshot.reals.resize(reals);
  return snapshot;
}

TEST(ScalarParameters, are_separate_for_an_optimizer_step) {
  Snapshot snapshot = with_scalars(100, 2000);
  snapshot.values.resize(300);
  EXPECT_FALSE(packs_scalars(snapshot));
  EXPECT_NE(lower(with_scalars(1, 2)).text.find("@main(%arg0: tensor<i64>, %arg1: tensor<f64>, %arg2: tensor<f64>)"),
            std::string::npos);
}

TEST(ScalarParameters, are_packed_for_a_long_chain) {
  const Snapshot snapshot = with_scalars(500, 500);
  EXPECT_TRUE(packs_scalars(snapshot));
  EXPECT_NE(lower(snapshot).text.find("@main(%arg0: tensor<500xi64>, %arg1: tensor<500xf64>)"), std::string::npos);
}

}  // namespace
}  // namespace torch_pjrt
