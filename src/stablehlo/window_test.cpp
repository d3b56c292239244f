#include "stablehlo/builder.h"
#include "stablehlo/golden.h"

namespace torch_pjrt::stablehlo {
namespace {

TEST(ReduceWindow, infers_the_number_of_windows) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {1, 6, 6}});
  const Value pooled = b.reduce_window(Reduction::kMax, x,
                                       {.dims = {1, 3, 3}, .strides = {1, 2, 2}, .padding = {{0, 0}, {1, 1}, {1, 1}}});
  EXPECT_EQ(pooled.dims(), (Dims{1, 3, 3}));
  const Value dilated = b.reduce_window(
      Reduction::kAdd, x, {.dims = {1, 2, 2}, .base_dilations = {1, 2, 1}, .window_dilations = {1, 1, 3}});
  EXPECT_EQ(dilated.dims(), (Dims{1, 10, 3}));
  const Value cumulative =
      b.reduce_window(Reduction::kAdd, x, {.dims = {1, 6, 1}, .padding = {{0, 0}, {5, 0}, {0, 0}}});
  const Value index = b.iota({DType::kS32, {1, 6, 6}}, 2);
  const Values both = b.reduce_window({x, index}, {b.lowest(DType::kF32), b.constant(0, DType::kS32)},
                                      {.dims = {1, 2, 2}, .strides = {1, 2, 2}}, [&](const Values& a) {
                                        const Value keep = b.compare(Comparison::kGe, a[0], a[2]);
                                        return Values{b.select(keep, a[0], a[2]), b.select(keep, a[1], a[3])};
                                      });
  const Value scalar = b.reduce_window(Reduction::kAdd, b.parameter({DType::kF32, {}}), {});
  expect_golden("stablehlo/reduce_window", b.finish({pooled, dilated, cumulative, both[0], both[1], scalar}));
}

TEST(SelectAndScatter, sends_each_source_to_its_window) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {6, 6}});
  const Value source = b.parameter({DType::kF32, {3, 3}});
  const Window window{.dims = {2, 2}, .strides = {2, 2}};
  const auto select = [&](const Values& a) { return Values{b.compare(Comparison::kGe, a[0], a[1])}; };
  const auto scatter = [&](const Values& a) { return Values{b.add(a[0], a[1])}; };
  const Value zero = b.constant(0.0, DType::kF32);
  expect_error(ErrorCode::kInvalidArgument,
               "stablehlo.select_and_scatter: one source element for each window: f32[6,6] for [3, 3] windows of "
               "f32[6,6]",
               [&] { b.select_and_scatter(x, x, zero, window, select, scatter); });
  expect_golden("stablehlo/select_and_scatter",
                b.finish({b.select_and_scatter(x, source, zero, window, select, scatter)}));
}

TEST(Convolution, infers_output_sizes) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {2, 4, 8, 8}});
  const Value w = b.parameter({DType::kF32, {6, 4, 3, 3}});
  const Value grouped_w = b.parameter({DType::kF32, {6, 2, 3, 3}});
  const ConvDims nchw{.input_spatial = {2, 3}, .kernel_spatial = {2, 3}, .output_spatial = {2, 3}};
  const Value plain = b.convolution(x, w, {.strides = {2, 1}, .padding = {{1, 1}, {0, 2}}}, nchw);
  EXPECT_EQ(plain.dims(), (Dims{2, 6, 4, 8}));
  const Value grouped = b.convolution(x, grouped_w, {.window_dilations = {2, 1}}, nchw, 2);
  EXPECT_EQ(grouped.dims(), (Dims{2, 6, 4, 6}));
  const Value transposed = b.convolution(x, w, {.base_dilations = {2, 2}, .padding = {{2, 2}, {2, 3}}}, nchw);
  EXPECT_EQ(transposed.dims(), (Dims{2, 6, 17, 18}));
  const Value weight_gradient = b.convolution(x, plain, {.window_dilations = {2, 1}, .padding = {{1, 1}, {0, 2}}},
                                              {.input_batch = 1,
                                               .input_feature = 0,
                                               .input_spatial = {2, 3},
                                               .kernel_input_feature = 0,
                                               .kernel_output_feature = 1,
                                               .kernel_spatial = {2, 3},
                                               .output_batch = 1,
                                               .output_feature = 0,
                                               .output_spatial = {2, 3}});
  const Value no_spatial =
      b.convolution(b.parameter({DType::kF32, {2, 4}}), b.parameter({DType::kF32, {6, 4}}), {}, {});
  EXPECT_EQ(no_spatial.dims(), (Dims{2, 6}));
  const Value batch_grouped = b.convolution(x, b.parameter({DType::kF32, {6, 4, 1, 1}}), {}, nchw, 1, 2);
  EXPECT_EQ(batch_grouped.dims(), (Dims{1, 6, 8, 8}));
  expect_golden("stablehlo/convolution",
                b.finish({plain, grouped, transposed, weight_gradient, no_spatial, batch_grouped}));
}

TEST(Convolution, accumulates_in_a_wider_type) {
  Builder b;
  const Value x = b.parameter({DType::kBF16, {1, 1, 4}});
  const Value w = b.parameter({DType::kBF16, {1, 1, 2}});
  const ConvDims dims{.input_spatial = {2}, .kernel_spatial = {2}, .output_spatial = {2}};
  expect_golden("stablehlo/convolution_accumulation", b.finish({b.convolution(x, w, {}, dims, 1, 1, DType::kF32)}));
}

TEST(Convolution, checks_features_and_groups) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {2, 4, 8}});
  const Value w = b.parameter({DType::kF32, {6, 3, 3}});
  const ConvDims dims{.input_spatial = {2}, .kernel_spatial = {2}, .output_spatial = {2}};
  expect_error(ErrorCode::kInvalidArgument,
               "stablehlo.convolution: input features must be kernel input features times groups: 4, 3, 1",
               [&] { b.convolution(x, w, {}, dims); });
}

}  // namespace
}  // namespace torch_pjrt::stablehlo
