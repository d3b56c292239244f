#include "stablehlo/builder.h"
#include "stablehlo/golden.h"

namespace torch_pjrt::stablehlo {
namespace {

TEST(Gather, selects_rows_and_batched_elements) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {5, 3}});
  const Value rows =
      b.clamp(b.constant(0, DType::kS64), b.parameter({DType::kS64, {4, 2}}), b.constant(4, DType::kS64));
  const Value row_values = b.gather(
      x, rows, {.offset_dims = {2}, .collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 2},
      {1, 3});
  EXPECT_EQ(row_values.dims(), (Dims{4, 2, 3}));
  // torch.gather along dimension 1.
  const Value columns = b.parameter({DType::kS64, {5, 2}});
  const Value elements = b.gather(x, columns,
                                  {.collapsed_slice_dims = {1},
                                   .operand_batching_dims = {0},
                                   .start_indices_batching_dims = {0},
                                   .start_index_map = {1},
                                   .index_vector_dim = 2,
                                   .indices_are_sorted = true},
                                  {1, 1});
  EXPECT_EQ(elements.dims(), (Dims{5, 2}));
  // Windows at index pairs.
  const Value pairs = b.parameter({DType::kS32, {2, 7}});
  const Value windows =
      b.gather(x, pairs, {.offset_dims = {0, 2}, .start_index_map = {0, 1}, .index_vector_dim = 0}, {2, 3});
  EXPECT_EQ(windows.dims(), (Dims{2, 7, 3}));
  expect_golden("stablehlo/gather", b.finish({row_values, elements, windows}));
}

TEST(Gather, checks_its_dimensions) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {5, 3}});
  const Value rows = b.parameter({DType::kS64, {4}});
  expect_error(ErrorCode::kInvalidArgument,
               "stablehlo.gather: slice sizes must fit the operand, and be 1 where dropped: [2, 3] of f32[5,3], "
               "dropped [0]",
               [&] {
                 b.gather(
                     x, rows,
                     {.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1},
                     {2, 3});
               });
  expect_error(
      ErrorCode::kInvalidArgument, "stablehlo.gather: one operand dimension for each index component: [0, 1] for 1",
      [&] {
        b.gather(x, rows,
                 {.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0, 1}, .index_vector_dim = 1},
                 {1, 3});
      });
}

TEST(Scatter, adds_rows_and_writes_batched_elements) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {5, 3}});
  const Value rows = b.parameter({DType::kS64, {4}});
  const Value updates = b.parameter({DType::kF32, {4, 3}});
  const ScatterDims row_dims{.update_window_dims = {1},
                             .inserted_window_dims = {0},
                             .scatter_dims_to_operand_dims = {0},
                             .index_vector_dim = 1};
  const Value added =
      b.scatter({x}, rows, {updates}, row_dims, [&](const Values& a) { return Values{b.add(a[0], a[1])}; })[0];
  const Value columns = b.parameter({DType::kS64, {5, 2, 1}});
  const Value elements = b.parameter({DType::kF32, {5, 2}});
  const Value written = b.scatter({x}, columns, {elements},
                                  {.inserted_window_dims = {1},
                                   .input_batching_dims = {0},
                                   .scatter_indices_batching_dims = {0},
                                   .scatter_dims_to_operand_dims = {1},
                                   .index_vector_dim = 2,
                                   .unique_indices = true},
                                  [&](const Values& a) { return Values{a[1]}; })[0];
  const Value counts = b.splat(0, {DType::kS32, {5, 3}});
  const Values both = b.scatter({x, counts}, rows, {updates, b.splat(1, {DType::kS32, {4, 3}})}, row_dims,
                                [&](const Values& a) { return Values{b.add(a[0], a[2]), b.add(a[1], a[3])}; });
  expect_golden("stablehlo/scatter", b.finish({added, written, both[0], both[1]}));
}

TEST(Scatter, checks_the_update) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {5, 3}});
  const Value rows = b.parameter({DType::kS64, {4}});
  expect_error(ErrorCode::kInvalidArgument,
               "stablehlo.scatter: the update must consist of the indices' sizes [4] and of windows within [3]: "
               "f32[3,3], window dimensions [1]",
               [&] {
                 b.scatter({x}, rows, {b.parameter({DType::kF32, {3, 3}})},
                           {.update_window_dims = {1},
                            .inserted_window_dims = {0},
                            .scatter_dims_to_operand_dims = {0},
                            .index_vector_dim = 1},
                           [&](const Values& a) { return Values{a[1]}; });
               });
}

}  // namespace
}  // namespace torch_pjrt::stablehlo
