// Average pooling and its backward.
#include <algorithm>

#include "ops/pool_windows.h"
#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Value;
using stablehlo::Values;

// What the sum over each window is divided by, with the dims of `like` (one element for each window).
Value divisor(LoweringContext& ctx, const Pooling& pool, Value like) {
  Builder& b = ctx.b;
  if (ctx.has("divisor_override")) return b.splat(ctx.integer("divisor_override"), like.type());
  const bool counts_padding = ctx.flag("count_include_pad", true);
  const int64_t first = like.rank() - static_cast<int64_t>(pool.spatial);
  Value total = b.splat(1, like.type());
  for (size_t i = 0; i < pool.spatial; ++i) {
    // Elements in each window along this dimension; past the padding there is nothing to count.
    Dims counts;
    for (int64_t o = 0; o < pool.output[i]; ++o) {
      const int64_t start = o * pool.stride[i] - pool.padding[i];
      const int64_t end = std::min(start + pool.kernel[i], pool.input[i] + pool.padding[i]);
      counts.push_back(counts_padding ? end - start : std::min(end, pool.input[i]) - std::max<int64_t>(start, 0));
    }
    const bool is_uniform = std::all_of(counts.begin(), counts.end(), [&](int64_t c) { return c == counts[0]; });
    if (is_uniform && counts[0] == 1) continue;
    const TensorType type{like.dtype(), {pool.output[i]}};
    const Value table =
        is_uniform ? b.splat(counts[0], type) : b.convert(b.dense(counts, {DType::kS64, type.dims}), like.dtype());
    total = b.multiply(total, b.broadcast_in_dim(table, like.dims(), {first + static_cast<int64_t>(i)}));
  }
  return total;
}

Values lower_avg_pool(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const Pooling pool = pooling(ctx, self);
  const Dims dims = replace_last(self.dims(), pool.output);
  if (product(dims) == 0) return {b.splat(0, {self.dtype(), dims})};
  const Value sum = sum_windows(b, pool, b.convert(self, accumulate_dtype(self.dtype())));
  return {b.convert(b.divide(sum, divisor(ctx, pool, sum)), self.dtype())};
}

Values lower_avg_pool_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const Pooling pool = pooling(ctx, self);
  if (self.numel() == 0) return {b.splat(0, self.type())};
  const Value grad = ctx.operand("grad_output", accumulate_dtype(self.dtype()));
  return {b.convert(sum_windows_backward(b, pool, b.divide(grad, divisor(ctx, pool, grad))), self.dtype())};
}

}  // namespace

const OpTable& avg_pool_ops() {
  static const OpTable table = {
      {.name = "aten::avg_pool2d", .lower = lower_avg_pool},
      {.name = "aten::avg_pool3d", .lower = lower_avg_pool},
      {.name = "aten::avg_pool2d_backward", .lower = lower_avg_pool_backward},
      {.name = "aten::avg_pool3d_backward", .lower = lower_avg_pool_backward},
  };
  return table;
}

}  // namespace torch_pjrt
