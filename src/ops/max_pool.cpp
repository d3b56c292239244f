#include "ops/max_pool.h"

#include <algorithm>

#include "ops/host_call.h"
#include "ops/host_kernel.h"
#include "ops/promotion.h"
#include "ops/registry.h"
#include "ops/value_check.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;
using stablehlo::Window;

Values take_maximum(Builder& b, const Values& arguments) {
  const Value value_a = arguments[0], index_a = arguments[1], value_b = arguments[2], index_b = arguments[3];
  const Value is_equal = b.compare(Comparison::kEq, value_b, value_a);
  const Value is_earlier = b.compare(Comparison::kLt, index_b, index_a);
  Value takes_b = b.logical_or(b.compare(Comparison::kGt, value_b, value_a), b.logical_and(is_equal, is_earlier));
  if (is_floating(value_a.dtype())) {
    const Value nan_a = b.is_nan(value_a);
    const Value later_nan =
        b.logical_and(b.is_nan(value_b), b.logical_or(b.logical_not(nan_a), b.logical_not(is_earlier)));
    takes_b = b.logical_or(later_nan, b.logical_and(b.logical_not(nan_a), takes_b));
  }
  return {b.select(takes_b, value_b, value_a), b.select(takes_b, index_b, index_a)};
}

namespace {

// A tensor of the windows' dims that holds, in dimension i of them, values[i] times the plane's stride; summed over i.
Value flat_offsets(Builder& b, const Pooling& pool, const Dims& dims, const std::vector<Dims>& values) {
  const Dims strides = row_major_strides(pool.input);
  const int64_t first = static_cast<int64_t>(dims.size() - pool.spatial);
  Value total;
  for (size_t i = 0; i < pool.spatial; ++i) {
    Dims scaled = values[i];
    for (int64_t& value : scaled) value *= strides[i];
    const Value table = b.dense(scaled, {pool.index_dtype(), {static_cast<int64_t>(scaled.size())}});
    const Value term = b.broadcast_in_dim(table, dims, {first + static_cast<int64_t>(i)});
    total = total ? b.add(total, term) : term;
  }
  return total;
}

// Flat position in the plane of every window's first element; may lie in the padding.
Value window_starts(Builder& b, const Pooling& pool, const Dims& dims) {
  std::vector<Dims> starts(pool.spatial);
  for (size_t i = 0; i < pool.spatial; ++i) {
    for (int64_t o = 0; o < pool.output[i]; ++o) starts[i].push_back(o * pool.stride[i] - pool.padding[i]);
  }
  return flat_offsets(b, pool, dims, starts);
}

// From a window's first element to its first element that is not padding.
Value first_valid(Builder& b, const Pooling& pool, const Dims& dims) {
  std::vector<Dims> skipped(pool.spatial);
  for (size_t i = 0; i < pool.spatial; ++i) {
    for (int64_t o = 0; o < pool.output[i]; ++o) {
      const int64_t missing = std::max<int64_t>(pool.padding[i] - o * pool.stride[i], 0);
      skipped[i].push_back((missing + pool.dilation[i] - 1) / pool.dilation[i] * pool.dilation[i]);
    }
  }
  return flat_offsets(b, pool, dims, skipped);
}

int64_t flat_offset(const Pooling& pool, const Dims& position) {
  const Dims strides = row_major_strides(pool.input);
  int64_t offset = 0;
  for (size_t i = 0; i < pool.spatial; ++i) offset += position[i] * pool.dilation[i] * strides[i];
  return offset;
}

Values max_pool_unrolled(Builder& b, const Pooling& pool, Value x) {
  const Value padded = pad_input(b, pool, x, b.lowest(x.dtype()));
  const Dims dims = replace_last(x.dims(), pool.output);
  const TensorType index_type{pool.index_dtype(), dims};
  // Where the first element is padding, its -inf stands for the first valid element until a greater one comes.
  Value best, offset = first_valid(b, pool, dims);
  for_each_position(pool, [&](const Dims& position) {
    const Value value = slice_position(b, pool, padded, position);
    if (!best) {
      best = value;
      return;
    }
    Value is_better = b.compare(Comparison::kGt, value, best);
    if (is_floating(value.dtype())) is_better = b.logical_or(is_better, b.is_nan(value));
    best = b.select(is_better, value, best);
    offset = b.select(is_better, b.splat(flat_offset(pool, position), index_type), offset);
  });
  return {best, b.add(window_starts(b, pool, dims), offset)};
}

Values max_pool_windowed(Builder& b, const Pooling& pool, Value x) {
  const DType index_dtype = pool.index_dtype();
  const Value flat = b.iota({index_dtype, {pool.plane()}}, 0);
  const Value index = b.broadcast_to(b.reshape(flat, pool.input), x.dims());
  Window window{with_leading(x.rank(), pool.kernel, 1),
                with_leading(x.rank(), pool.stride, 1),
                {},
                with_leading(x.rank(), pool.dilation, 1),
                {}};
  window.padding.resize(x.dims().size() - pool.spatial, {0, 0});
  for (size_t i = 0; i < pool.spatial; ++i) window.padding.emplace_back(pool.padding[i], pool.high(i));
  return b.reduce_window({x, index}, {b.lowest(x.dtype()), b.highest(index_dtype)}, window,
                         [&b](const Values& arguments) { return take_maximum(b, arguments); });
}

}  // namespace

Values max_pool(Builder& b, const Pooling& pool, Value x) {
  const Dims dims = replace_last(x.dims(), pool.output);
  if (product(dims) == 0) return {b.splat(0, {x.dtype(), dims}), b.splat(0, {DType::kS64, dims})};
  const Values result =
      pool.window_size() <= kMaxUnrolledWindow ? max_pool_unrolled(b, pool, x) : max_pool_windowed(b, pool, x);
  return {result[0], b.convert(result[1], DType::kS64)};
}

namespace {

// Zeros like the planes of `self` with every update written at its flat index in its plane.
Value scatter_into_planes(Builder& b, Value updates, Value indices, const Dims& leading, const Dims& planes,
                          const stablehlo::Region& update) {
  const int64_t plane = product(planes);
  const int64_t batches = product(leading);
  Dims dims = leading;
  dims.insert(dims.end(), planes.begin(), planes.end());
  if (product(dims) == 0 || updates.numel() == 0) return b.splat(0, {updates.dtype(), dims});
  const TensorType type{DType::kS64, {batches, updates.numel() / batches}};
  const Value start = b.multiply(b.iota(type, 0), b.splat(plane, type));
  const Value flat = b.add(start, b.reshape(b.convert(indices, DType::kS64), type.dims));
  stablehlo::ScatterDims scatter;
  scatter.inserted_window_dims = {0};
  scatter.scatter_dims_to_operand_dims = {0};
  scatter.index_vector_dim = 1;
  const Value zeros = b.splat(0, {updates.dtype(), {batches * plane}});
  const Dims count{updates.numel()};
  return b.reshape(b.scatter({zeros}, b.reshape(flat, count), {b.reshape(updates, count)}, scatter, update)[0], dims);
}

Value scatter_add_into_planes(Builder& b, Value updates, Value indices, const Dims& input_dims, size_t spatial) {
  const Dims leading = leading_dims(input_dims, spatial);
  return scatter_into_planes(b, updates, indices, leading, spatial_dims(input_dims, spatial),
                             [&b](const Values& pair) { return Values{b.add(pair[0], pair[1])}; });
}

// Each input element asks whether the one window that covers it chose it.
Value max_backward_apart(Builder& b, const Pooling& pool, Value grad, Value indices) {
  const Value chosen = spread_windows(b, pool, indices, b.constant(-1, indices.dtype()));
  const Value spread = spread_windows(b, pool, grad, b.constant(0, grad.dtype()));
  const Value flat = b.reshape(b.iota({indices.dtype(), {pool.plane()}}, 0), pool.input);
  const Value is_chosen = b.compare(Comparison::kEq, chosen, b.broadcast_to(flat, chosen.dims()));
  return b.select(is_chosen, spread, b.splat(0, spread.type()));
}

// One term for each position in the window: the gradients of the windows that chose it.
Value max_backward_overlapping(Builder& b, const Pooling& pool, Value grad, Value indices) {
  const Value offsets = b.subtract(indices, window_starts(b, pool, grad.dims()));
  const Value zero = b.splat(0, grad.type());
  Value total;
  for_each_position(pool, [&](const Dims& position) {
    const Value offset = b.splat(flat_offset(pool, position), offsets.type());
    const Value chosen = b.select(b.compare(Comparison::kEq, offsets, offset), grad, zero);
    const Value term = place_position(b, pool, chosen, position);
    total = total ? b.add(total, term) : term;
  });
  return total;
}

}  // namespace

Value max_pool_backward(Builder& b, const std::optional<Pooling>& pool, Value grad, Value indices, Value self,
                        size_t spatial) {
  const Value wide = b.convert(grad, accumulate_dtype(grad.dtype()));
  Value result;
  if (grad.numel() == 0 || self.numel() == 0) {
    result = b.splat(0, self.type());
  } else if (pool && !pool->is_overlapping()) {
    result = max_backward_apart(b, *pool, wide, b.convert(indices, pool->index_dtype()));
  } else if (pool && pool->window_size() <= kMaxUnrolledWindow) {
    result = max_backward_overlapping(b, *pool, wide, b.convert(indices, pool->index_dtype()));
  } else {
    result = scatter_add_into_planes(b, wide, indices, self.dims(), spatial);
  }
  return b.convert(result, self.dtype());
}

namespace {

bool is_on_host(const LoweringContext& ctx, const Pooling& pool) {
  return spatial_rank(ctx) == 2 && product(pool.output) > 0 && prefers_host_max_pool(ctx.tensor("self").type());
}

// ATen's kernel, forward or backward, on tensors that lie in `order`.
HostCall host_call(LoweringContext& ctx, const Pooling& pool, std::string_view op, const Values& tensors,
                   const Dims& order) {
  HostCall call(ctx.b, op);
  for (const Value tensor : tensors) call.tensor(tensor, order);
  call.integers(pool.kernel).integers(pool.stride).integers(pool.padding).integers(pool.dilation);
  call.attribute(ctx.flag("ceil_mode"));
  return call;
}

Values lower_max_pool(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const Pooling pool = pooling(ctx, self);
  if (is_on_host(ctx, pool)) {
    const Dims order = features_last(self.rank()), dims = replace_last(self.dims(), pool.output);
    HostCall call = host_call(ctx, pool, "aten::max_pool2d_with_indices", {self}, order);
    return call.result({self.dtype(), dims}, order).result({DType::kS64, dims}, order).emit();
  }
  return max_pool(ctx.b, pool, self);
}

Values lower_max_pool_backward(LoweringContext& ctx) {
  const Value self = ctx.tensor("self"), grad = ctx.tensor("grad_output"), indices = ctx.tensor("indices");
  const Pooling pool = pooling(ctx, self);
  if (is_on_host(ctx, pool)) {
    const Dims order = features_last(self.rank());
    HostCall call = host_call(ctx, pool, "aten::max_pool2d_with_indices_backward", {grad, self}, order);
    return call.tensor(indices, order).result(self.type(), order).emit();
  }
  return {max_pool_backward(ctx.b, pool, grad, indices, self, spatial_rank(ctx))};
}

Values lower_max_unpool(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const size_t spatial = spatial_rank(ctx);
  const Dims leading = leading_dims(self.dims(), spatial), output = ctx.ints("output_size");
  std::string volume;
  for (const int64_t size : output) volume += concat(volume.empty() ? "" : "x", size);
  check_range(b, ctx.tensor("indices"), 0, product(output),
              {ErrorCode::kInvalidArgument,
               "Found an invalid max index: ", concat(" (output volumes are of size ", volume, ")")});
  return {scatter_into_planes(b, self, ctx.tensor("indices"), leading, output,
                              [](const Values& pair) { return Values{pair[1]}; })};
}

}  // namespace

const OpTable& max_pool_ops() {
  static const OpTable table = {
      {.name = "aten::max_pool2d_with_indices", .lower = lower_max_pool},
      {.name = "aten::max_pool3d_with_indices", .lower = lower_max_pool},
      {.name = "aten::max_pool2d_with_indices_backward", .lower = lower_max_pool_backward},
      {.name = "aten::max_pool3d_with_indices_backward", .lower = lower_max_pool_backward},
      {.name = "aten::max_unpool2d", .lower = lower_max_unpool},
      {.name = "aten::max_unpool3d", .lower = lower_max_unpool},
  };
  return table;
}

}  // namespace torch_pjrt
