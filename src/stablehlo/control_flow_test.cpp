#include "stablehlo/builder.h"
#include "stablehlo/golden.h"

namespace torch_pjrt::stablehlo {
namespace {

TEST(While, carries_its_values) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {4}});
  const Value limit = b.parameter({DType::kS32, {}});
  const Values results = b.while_loop(
      {b.constant(0, DType::kS32), x}, [&](const Values& a) { return Values{b.compare(Comparison::kLt, a[0], limit)}; },
      [&](const Values& a) {
        return Values{b.add(a[0], b.constant(1, DType::kS32)), b.multiply(a[1], b.splat(0.5, a[1].type()))};
      });
  EXPECT_EQ(results[1].type(), x.type());
  expect_golden("stablehlo/while", b.finish(results));
}

TEST(While, checks_what_its_regions_yield) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {4}});
  const Value go = b.parameter({DType::kPred, {}});
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.while: the region must yield (f32[4]): ()", [&] {
    b.while_loop({x}, [&](const Values&) { return Values{go}; }, [](const Values&) { return Values{}; });
  });
}

TEST(If, nests_and_captures) {
  Builder b;
  const Value p = b.parameter({DType::kPred, {}});
  const Value x = b.parameter({DType::kF32, {4}});
  const Values results = b.if_else(
      p, [&](const Values&) { return Values{b.negate(x), b.constant(1, DType::kS32)}; },
      [&](const Values&) {
        const Values inner = b.if_else(
            b.logical_not(p), [&](const Values&) { return Values{b.exp(x)}; },
            [&](const Values&) { return Values{x}; });
        return Values{inner[0], b.constant(2, DType::kS32)};
      });
  expect_golden("stablehlo/if", b.finish({results[0], results[1], b.constant(1, DType::kS32)}));
}

TEST(If, needs_a_scalar_predicate) {
  Builder b;
  const Value p = b.parameter({DType::kPred, {2}});
  const auto nothing = [](const Values&) { return Values{}; };
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.if: pred must be a pred scalar: pred[2]",
               [&] { b.if_else(p, nothing, nothing); });
}

TEST(OptimizationBarrier, keeps_order_and_types) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {4}});
  const Value i = b.parameter({DType::kS32, {}});
  EXPECT_TRUE(b.optimization_barrier({}).empty());
  expect_golden("stablehlo/optimization_barrier", b.finish(b.optimization_barrier({x, i, x})));
}

TEST(OptimizationBarrier, guarded_results_depend_on_all_operands) {
  Builder b;
  b.guard_barriers();
  const Value x = b.parameter({DType::kF32, {4}});
  const Value flag = b.parameter({DType::kPred, {}});
  const Value z = b.parameter({DType::kC64, {2, 3}});
  const Value narrow = b.parameter({DType::kBF16, {5}});
  const Value nothing = b.parameter({DType::kF64, {0}});
  const Values results = b.optimization_barrier({x, flag, z, narrow, nothing});
  expect_golden("stablehlo/optimization_barrier_guarded", b.finish(results));
}

TEST(RngBitGenerator, returns_state_and_bits) {
  Builder b;
  const Value state = b.parameter({DType::kU64, {2}});
  const Value wide = b.parameter({DType::kU64, {3}});
  const auto [next, bits] = b.rng_bit_generator(state, RngAlgorithm::kThreeFry, {DType::kU32, {4}});
  const auto [last, more] = b.rng_bit_generator(next, RngAlgorithm::kPhilox, {DType::kU64, {2, 2}});
  const auto [any, rest] = b.rng_bit_generator(last, RngAlgorithm::kDefault, {DType::kU8, {3}});
  expect_error(ErrorCode::kInvalidArgument,
               "stablehlo.rng_bit_generator: state must be u64[2], or u64[3] for PHILOX: u64[3]",
               [&] { b.rng_bit_generator(wide, RngAlgorithm::kThreeFry, {DType::kU32, {4}}); });
  expect_golden("stablehlo/rng_bit_generator", b.finish({any, bits, more, rest}));
}

TEST(CustomCall, passes_a_dictionary_and_row_major_layouts) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {2, 3}});
  const Value scalar = b.parameter({DType::kF32, {}});
  const Values one =
      b.custom_call("norm", {x, scalar}, {{DType::kF32, {3}}}, "eps = 1.0e-05 : f32", {.has_side_effect = true});
  const Values two = b.custom_call("split", {x}, {{DType::kF32, {3}}, {DType::kF32, {3}}});
  const Values moved = b.custom_call("update", {scalar, x}, {x.type()}, "", {.aliases = {{0, 1}}});
  const Values both = b.custom_call("swap", {x, moved[0]}, {x.type(), x.type()}, "", {.aliases = {{0, 1}, {1, 0}}});
  const Values none = b.custom_call("legacy", {x}, {}, "quoted \"text\"", {.has_side_effect = true, .api_version = 1});
  EXPECT_TRUE(none.empty());
  expect_golden("stablehlo/custom_call", b.finish({one[0], two[0], two[1], moved[0], both[0], both[1]}));
}

}  // namespace
}  // namespace torch_pjrt::stablehlo
