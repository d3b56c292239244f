// Adaptive pooling: window o of a dimension is [floor(o * input / output), ceil((o + 1) * input / output)).
#include <algorithm>

#include "ops/max_pool.h"
#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

struct AdaptiveWindows {
  Dims starts, lengths;

  int64_t longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
};

AdaptiveWindows adaptive_windows(int64_t input, int64_t output) {
  AdaptiveWindows windows;
  for (int64_t o = 0; o < output; ++o) {
    windows.starts.push_back(o * input / output);
    windows.lengths.push_back(((o + 1) * input + output - 1) / output - windows.starts.back());
  }
  return windows;
}

// For each of the `input` positions the windows that cover it, which are neighbours.
AdaptiveWindows covering_windows(const AdaptiveWindows& windows, int64_t input) {
  AdaptiveWindows covering{Dims(static_cast<size_t>(input), -1), Dims(static_cast<size_t>(input), 0)};
  for (size_t o = 0; o < windows.starts.size(); ++o) {
    for (int64_t i = 0; i < windows.lengths[o]; ++i) {
      const auto position = static_cast<size_t>(windows.starts[o] + i);
      if (covering.starts[position] < 0) covering.starts[position] = static_cast<int64_t>(o);
      ++covering.lengths[position];
    }
  }
  return covering;
}

// Replaces dimension `dim` of x by two: the windows and the positions in a window, `fill` where a window is shorter.
Value gather_windows(Builder& b, Value x, int64_t dim, const AdaptiveWindows& windows, Value fill) {
  const int64_t longest = windows.longest();
  const Dims table_dims{static_cast<int64_t>(windows.starts.size()), longest};
  std::vector<int64_t> table;
  for (const int64_t start : windows.starts) {
    for (int64_t i = 0; i < longest; ++i) table.push_back(std::min(start + i, x.dim(dim) - 1));
  }
  stablehlo::GatherDims gather;
  for (int64_t i = 0; i < x.rank() + 1; ++i) {
    if (i != dim && i != dim + 1) gather.offset_dims.push_back(i);
  }
  gather.collapsed_slice_dims = gather.start_index_map = {dim};
  gather.index_vector_dim = 2;
  Dims slice_sizes = x.dims();
  slice_sizes[static_cast<size_t>(dim)] = 1;
  const Value gathered = b.gather(x, b.dense(table, {DType::kS32, table_dims}), gather, slice_sizes);
  const Value lengths = b.dense(windows.lengths, {DType::kS32, {table_dims[0]}});
  const Value is_inside =
      b.compare(Comparison::kLt, b.iota({DType::kS32, table_dims}, 1), b.broadcast_in_dim(lengths, table_dims, {0}));
  return b.select(b.broadcast_in_dim(is_inside, gathered.dims(), {dim, dim + 1}), gathered,
                  b.broadcast_to(fill, gathered.dims()));
}

// x divided by the number of elements in each window.
Value divide_by_lengths(Builder& b, Value x, const std::vector<AdaptiveWindows>& windows) {
  const auto first = x.rank() - static_cast<int64_t>(windows.size());
  for (size_t i = 0; i < windows.size(); ++i) {
    const Value lengths = b.dense(windows[i].lengths, {DType::kS64, {static_cast<int64_t>(windows[i].lengths.size())}});
    const Value table = b.convert(lengths, x.dtype());
    x = b.divide(x, b.broadcast_in_dim(table, x.dims(), {first + static_cast<int64_t>(i)}));
  }
  return x;
}

std::vector<AdaptiveWindows> all_adaptive_windows(const Dims& input, const Dims& output) {
  std::vector<AdaptiveWindows> windows;
  for (size_t i = 0; i < input.size(); ++i) windows.push_back(adaptive_windows(input[i], output[i]));
  return windows;
}

// Sums x over the windows of each of its last dimensions.
Value sum_adaptive(Builder& b, Value x, const std::vector<AdaptiveWindows>& windows) {
  const auto first = x.rank() - static_cast<int64_t>(windows.size());
  for (size_t i = 0; i < windows.size(); ++i) {
    const int64_t dim = first + static_cast<int64_t>(i);
    x = b.reduce(Reduction::kAdd, gather_windows(b, x, dim, windows[i], b.constant(0, x.dtype())), {dim + 1});
  }
  return x;
}

Values lower_adaptive_avg_pool(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const size_t n = spatial_rank(ctx);
  const Dims output = spatial_argument(ctx, "output_size");
  const Dims input = spatial_dims(self.dims(), n);
  const Dims dims = replace_last(self.dims(), output);
  if (product(dims) == 0) return {b.splat(0, {self.dtype(), dims})};
  if (product(input) == 0) ctx.decline("windows of nothing");
  const Value x = b.convert(self, accumulate_dtype(self.dtype()));
  if (const auto pool = equal_windows(input, output)) {
    const Value sum = sum_windows(b, *pool, x);
    return {b.convert(b.divide(sum, b.splat(pool->window_size(), sum.type())), self.dtype())};
  }
  const auto windows = all_adaptive_windows(input, output);
  return {b.convert(divide_by_lengths(b, sum_adaptive(b, x, windows), windows), self.dtype())};
}

Values lower_adaptive_avg_pool_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const size_t n = spatial_rank(ctx);
  const Value grad = ctx.operand("grad_output", accumulate_dtype(self.dtype()));
  const Dims input = spatial_dims(self.dims(), n);
  const Dims output = spatial_dims(grad.dims(), n);
  if (self.numel() == 0 || grad.numel() == 0) return {b.splat(0, self.type())};
  if (const auto pool = equal_windows(input, output)) {
    const Value share = b.divide(grad, b.splat(pool->window_size(), grad.type()));
    return {b.convert(sum_windows_backward(b, *pool, share), self.dtype())};
  }
  const auto windows = all_adaptive_windows(input, output);
  std::vector<AdaptiveWindows> covering;
  for (size_t i = 0; i < n; ++i) covering.push_back(covering_windows(windows[i], input[i]));
  return {b.convert(sum_adaptive(b, divide_by_lengths(b, grad, windows), covering), self.dtype())};
}

Values lower_adaptive_max_pool(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const size_t n = spatial_rank(ctx);
  const Dims output = spatial_argument(ctx, "output_size");
  const Dims input = spatial_dims(self.dims(), n);
  const Dims dims = replace_last(self.dims(), output);
  if (product(dims) == 0) return {b.splat(0, {self.dtype(), dims}), b.splat(0, {DType::kS64, dims})};
  if (product(input) == 0) ctx.decline("windows of nothing");
  if (const auto pool = equal_windows(input, output)) return max_pool(b, *pool, self);

  const auto windows = all_adaptive_windows(input, output);
  const auto first = self.rank() - static_cast<int64_t>(n);
  const Value no_value = b.lowest(self.dtype());
  const Value no_index = b.highest(DType::kS64);
  Value x = self;
  Value index = b.reshape(b.iota({DType::kS64, {product(input)}}, 0), input);
  Dims reduced;
  for (size_t i = 0; i < n; ++i) {
    const int64_t dim = 2 * static_cast<int64_t>(i);
    x = gather_windows(b, x, first + dim, windows[i], no_value);
    index = gather_windows(b, index, dim, windows[i], no_index);
    reduced.push_back(first + dim + 1);
  }
  return b.reduce({x, b.broadcast_to(index, x.dims())}, {no_value, no_index}, reduced,
                  [&b](const Values& arguments) { return take_maximum(b, arguments); });
}

Values lower_adaptive_max_pool_backward(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const Value grad = ctx.tensor("grad_output");
  const size_t n = spatial_rank(ctx);
  const auto pool = equal_windows(spatial_dims(self.dims(), n), spatial_dims(grad.dims(), n));
  return {max_pool_backward(ctx.b, pool, grad, ctx.tensor("indices"), self, n)};
}

}  // namespace

const OpTable& adaptive_pool_ops() {
  static const OpTable table = {
      {.name = "aten::_adaptive_avg_pool2d", .lower = lower_adaptive_avg_pool},
      {.name = "aten::_adaptive_avg_pool3d", .lower = lower_adaptive_avg_pool},
      {.name = "aten::_adaptive_avg_pool2d_backward", .lower = lower_adaptive_avg_pool_backward},
      {.name = "aten::_adaptive_avg_pool3d_backward", .lower = lower_adaptive_avg_pool_backward},
      {.name = "aten::adaptive_max_pool2d", .lower = lower_adaptive_max_pool},
      {.name = "aten::adaptive_max_pool3d", .lower = lower_adaptive_max_pool},
      {.name = "aten::adaptive_max_pool2d_backward", .lower = lower_adaptive_max_pool_backward},
      {.name = "aten::adaptive_max_pool3d_backward", .lower = lower_adaptive_max_pool_backward},
  };
  return table;
}

}  // namespace torch_pjrt
