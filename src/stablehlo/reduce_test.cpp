#include "stablehlo/builder.h"
#include "stablehlo/golden.h"

namespace torch_pjrt::stablehlo {
namespace {

TEST(Reduce, removes_the_reduced_dimensions) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {2, 3, 4}});
  const Value p = b.parameter({DType::kPred, {2, 3}});
  const Value i = b.parameter({DType::kS32, {2, 3}});
  const Values values{b.reduce(Reduction::kAdd, x, {0, 2}),    b.reduce(Reduction::kMul, x, {1}),
                      b.reduce(Reduction::kMax, x, {0, 1, 2}), b.reduce(Reduction::kMin, i, {0}),
                      b.reduce(Reduction::kAnd, p, {1}),       b.reduce(Reduction::kOr, p, {0, 1})};
  EXPECT_EQ(values[0].dims(), (Dims{3}));
  EXPECT_EQ(values[2].dims(), Dims{});
  expect_golden("stablehlo/reduce", b.finish(values));
}

TEST(Reduce, of_several_operands_runs_its_body) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {2, 5}});
  const Value index = b.iota({DType::kS64, {2, 5}}, 1);
  const Values argmax =
      b.reduce({x, index}, {b.lowest(DType::kF32), b.constant(0, DType::kS64)}, {1}, [&](const Values& a) {
        const Value is_first =
            b.logical_or(b.compare(Comparison::kGt, a[0], a[2]),
                         b.logical_and(b.compare(Comparison::kEq, a[0], a[2]), b.compare(Comparison::kLt, a[1], a[3])));
        return Values{b.select(is_first, a[0], a[2]), b.select(is_first, a[1], a[3])};
      });
  expect_golden("stablehlo/reduce_variadic", b.finish(argmax));
}

TEST(Reduce, checks_operands_and_body) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {2, 5}});
  const Value zero = b.constant(0.0, DType::kF32);
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.reduce: dimensions must be in [0, 2): [2]",
               [&] { b.reduce(Reduction::kAdd, x, {2}); });
  expect_error(ErrorCode::kInvalidArgument,
               "stablehlo.reduce: an initial value must be a scalar of the operand's dtype: s32[] for f32[2,5]",
               [&] { b.reduce({x}, {b.constant(0, DType::kS32)}, {0}, [](const Values& a) { return Values{a[0]}; }); });
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.reduce: the region must yield (f32[]): (pred[])", [&] {
    b.reduce({x}, {zero}, {0}, [&](const Values& a) { return Values{b.compare(Comparison::kLt, a[0], a[1])}; });
  });
}

TEST(Sort, carries_several_operands) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {3, 5}});
  const Value index = b.iota({DType::kS64, {3, 5}}, 1);
  const Values sorted = b.sort({x, index}, 1, true, [&](const Values& a) {
    return Values{b.compare(Comparison::kLt, a[0], a[1], CompareType::kTotalOrder)};
  });
  const Value descending =
      b.sort({x}, 0, false, [&](const Values& a) { return Values{b.compare(Comparison::kGt, a[0], a[1])}; })[0];
  const auto [values, indices] = b.top_k(x, 2);
  EXPECT_EQ(indices.type(), (TensorType{DType::kS32, {3, 2}}));
  expect_golden("stablehlo/sort", b.finish({sorted[0], sorted[1], descending, values, indices}));
}

}  // namespace
}  // namespace torch_pjrt::stablehlo
