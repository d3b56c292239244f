#include "stablehlo/builder.h"

#include "stablehlo/golden.h"

namespace torch_pjrt::stablehlo {
namespace {

const TensorType kMatrix{DType::kF32, {2, 3}};

TEST(Module, carries_parameters_attributes_and_partitions) {
  Builder b;
  b.set_partitions(1, 4);
  const Value donated = b.parameter(kMatrix, {.aliasing_output = 0});
  const Value donor = b.parameter(kMatrix, {.buffer_donor = true});
  const Value plain = b.parameter({DType::kS64, {}});
  expect_golden("stablehlo/module", b.finish({b.add(donated, donor), plain}, "step \"1\""));
}

TEST(Module, may_have_no_parameters_and_no_results) {
  Builder b;
  expect_golden("stablehlo/module_empty", b.finish({}));
}

TEST(Module, finishes_once) {
  Builder b;
  b.finish({});
  EXPECT_THROW(b.finish({}), Error);
}

TEST(Module, takes_parameters_at_any_time) {
  Builder b;
  const Value first = b.parameter(kMatrix);
  const Value negated = b.negate(first);
  const Value second = b.parameter(kMatrix);
  expect_golden("stablehlo/module_late_parameter", b.finish({b.add(negated, second)}));
}

TEST(Location, marks_the_lines_emitted_while_it_is_set) {
  Builder b;
  const Value x = b.parameter(kMatrix);
  b.set_location("aten::relu \"model.py\":12\n");
  const Value y = b.maximum(x, b.splat(0.0, kMatrix));
  const Value sum =
      b.reduce({y}, {b.constant(0.0, DType::kF32)}, {0}, [&](const Values& a) { return Values{b.add(a[0], a[1])}; })[0];
  b.set_location("");
  expect_golden("stablehlo/location", b.finish({b.negate(sum)}));
}

TEST(Value, knows_its_type) {
  Builder b;
  const Value x = b.parameter(kMatrix);
  EXPECT_EQ(x.type(), kMatrix);
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.dim(1), 3);
  EXPECT_FALSE(Value());
}

TEST(Region, may_not_capture_in_reducer_bodies) {
  Builder b;
  const Value x = b.parameter(kMatrix);
  const Value zero = b.constant(0.0, DType::kF32);
  EXPECT_THROW(b.reduce({x}, {zero}, {0}, [&](const Values& a) { return Values{b.add(a[0], zero)}; }), Error);
}

TEST(Region, makes_its_own_constants) {
  Builder b;
  const Value x = b.parameter(kMatrix);
  const Value one = b.constant(1.0, DType::kF32);
  b.reduce({x}, {one}, {0}, [&](const Values& a) {
    const Value inner = b.constant(1.0, DType::kF32);
    EXPECT_NE(inner, one);
    EXPECT_EQ(inner, b.constant(1.0, DType::kF32));
    return Values{b.multiply(b.multiply(a[0], inner), a[1])};
  });
  EXPECT_EQ(one, b.constant(1.0, DType::kF32));
}

}  // namespace
}  // namespace torch_pjrt::stablehlo
