#include <limits>

#include "stablehlo/builder.h"
#include "stablehlo/golden.h"

namespace torch_pjrt::stablehlo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kFloats[] = {DType::kF64, DType::kF32, DType::kBF16, DType::kF16, DType::kF8E5M2, DType::kF8E4M3FN};
constexpr DType kIntegers[] = {DType::kS8, DType::kS16, DType::kS32, DType::kS64,
                               DType::kU8, DType::kU16, DType::kU32, DType::kU64};

TEST(Constant, of_floating_types_is_exact) {
  Builder b;
  Values values;
  for (const DType dtype : kFloats) {
    for (const double value : {0.0, -0.0, 1.0, 0.1, -2.5, 1e30, 3e-320, kInfinity, -kInfinity, kNan}) {
      values.push_back(b.constant(value, dtype));
    }
    values.push_back(b.lowest(dtype));
    values.push_back(b.highest(dtype));
  }
  expect_golden("stablehlo/constant_float", b.finish(values));
}

TEST(Constant, of_integer_types_wraps_like_a_cast) {
  Builder b;
  Values values{b.constant(true, DType::kPred), b.constant(0, DType::kPred), b.constant(2.5, DType::kPred)};
  for (const DType dtype : kIntegers) {
    for (const int value : {-1, 300, 7}) values.push_back(b.constant(value, dtype));
    values.push_back(b.lowest(dtype));
    values.push_back(b.highest(dtype));
    values.push_back(b.constant(3.0, dtype));
  }
  expect_golden("stablehlo/constant_integer", b.finish(values));
}

TEST(Constant, of_complex_types_has_both_parts) {
  Builder b;
  expect_golden("stablehlo/constant_complex",
                b.finish({b.constant(std::complex<double>(1.5, -0.25), DType::kC64), b.constant(0.1, DType::kC128),
                          b.constant(std::complex<double>(kInfinity, kNan), DType::kC64)}));
}

TEST(Constant, is_emitted_once) {
  Builder b;
  EXPECT_EQ(b.constant(1.0, DType::kF32), b.constant(1, DType::kF32));
  EXPECT_EQ(b.constant(0.1, DType::kF32), b.constant(static_cast<double>(0.1f), DType::kF32));
  EXPECT_NE(b.constant(0.0, DType::kF32), b.constant(-0.0, DType::kF32));
  EXPECT_NE(b.constant(1.0, DType::kF32), b.constant(1.0, DType::kF64));
  const TensorType type{DType::kF32, {2}};
  EXPECT_EQ(b.splat(1.0, type), b.splat(1.0, type));
}

TEST(Constant, refuses_fractions_of_integer_types) {
  Builder b;
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.constant: not a number of type s32: 0.5",
               [&] { b.constant(0.5, DType::kS32); });
}

TEST(Dense, lists_its_elements) {
  Builder b;
  std::vector<int64_t> table(70);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int64_t>(i * i) - 5;
  expect_golden(
      "stablehlo/constant_dense",
      b.finish({b.dense(std::vector<int64_t>{1, -2, 3, 4}, {DType::kS32, {2, 2}}),
                b.dense(std::vector<int64_t>{7, 7, 7}, {DType::kS64, {3}}),
                b.dense(std::vector<double>{0.5, kInfinity}, {DType::kF32, {2}}),
                b.dense(std::vector<int64_t>{1, 0}, {DType::kPred, {2}}),
                b.dense(std::vector<int64_t>{}, {DType::kS64, {0, 2}}), b.dense(table, {DType::kS64, {7, 10}}),
                b.dense(table, {DType::kS32, {70}}), b.dense(std::vector<double>{1.0, 2.0}, {DType::kC64, {2}}),
                b.iota({DType::kS32, {2, 3}}, 1), b.iota({DType::kF32, {4}}, 0)}));
}

TEST(Dense, needs_one_number_for_each_element) {
  Builder b;
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.constant: one number for each element: 1 for s64[2]",
               [&] { b.dense(std::vector<int64_t>{1}, {DType::kS64, {2}}); });
}

TEST(Identity, is_neutral_for_each_reduction) {
  Builder b;
  Values values;
  for (const DType dtype : {DType::kF32, DType::kS32, DType::kU8, DType::kPred}) {
    for (const Reduction reduction : {Reduction::kAdd, Reduction::kMul, Reduction::kMax, Reduction::kMin}) {
      values.push_back(b.identity(reduction, dtype));
    }
  }
  for (const DType dtype : {DType::kS32, DType::kU8, DType::kPred}) {
    values.push_back(b.identity(Reduction::kAnd, dtype));
    values.push_back(b.identity(Reduction::kOr, dtype));
  }
  expect_golden("stablehlo/identity", b.finish(values));
}

}  // namespace
}  // namespace torch_pjrt::stablehlo
