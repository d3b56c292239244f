// Pooling over the last two or three dimensions: maximum with indices, average, adaptive, and their backward.
//
// A window of few elements is unrolled: one strided slice of the input for each position in the window, combined
// elementwise. XLA fuses and vectorises that, which it does not do for reduce_window and scatter.
#include <algorithm>

#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;
using stablehlo::Window;

// Larger windows take reduce_window and scatter, so that a program stays small.
constexpr int64_t kMaxUnrolled = 64;

size_t spatial_rank(const LoweringContext& ctx) { return ctx.name().find("3d") != std::string_view::npos ? 3 : 2; }

Dims last(const Dims& dims, size_t count) { return Dims(dims.end() - static_cast<int64_t>(count), dims.end()); }

// `dims` with the last ones replaced.
Dims replace_last(Dims dims, const Dims& values) {
  std::copy(values.begin(), values.end(), dims.end() - static_cast<int64_t>(values.size()));
  return dims;
}

// Values for the last dimensions of a tensor of rank `rank`, after `fill` for the leading ones.
Dims with_leading(int64_t rank, const Dims& values, int64_t fill) {
  return replace_last(Dims(static_cast<size_t>(rank), fill), values);
}

// The windows of one pooling call; every list has one entry for each spatial dimension.
struct Pooling {
  Dims input, output, kernel, stride, padding, dilation;
  size_t spatial = 0;

  int64_t window_size() const { return product(kernel); }
  // Elements of one input plane.
  int64_t plane() const { return product(input); }
  int64_t reach(size_t i) const { return dilation[i] * (kernel[i] - 1); }
  bool is_overlapping() const {
    for (size_t i = 0; i < spatial; ++i) {
      if (stride[i] <= reach(i)) return true;
    }
    return false;
  }
  // Padding after the input that the last window needs; may be negative.
  int64_t high(size_t i) const { return (output[i] - 1) * stride[i] + reach(i) + 1 - input[i] - padding[i]; }
  DType index_dtype() const { return plane() < (int64_t{1} << 31) ? DType::kS32 : DType::kS64; }
};

Dims expanded(const LoweringContext& ctx, std::string_view name, size_t count, const Dims& fallback) {
  const Dims values = ctx.ints(name);
  if (values.empty()) return fallback;
  return values.size() == 1 ? Dims(count, values[0]) : values;
}

// at::native::pooling_output_shape
int64_t output_size(const Pooling& pool, size_t i, bool ceil_mode) {
  const int64_t span = pool.input[i] + 2 * pool.padding[i] - pool.reach(i) - 1 + (ceil_mode ? pool.stride[i] - 1 : 0);
  int64_t size = (span >= 0 ? span / pool.stride[i] : -1) + 1;
  if (ceil_mode && (size - 1) * pool.stride[i] >= pool.input[i] + pool.padding[i]) --size;
  return size;
}

Pooling pooling(LoweringContext& ctx, Value self) {
  Pooling pool;
  const size_t n = pool.spatial = spatial_rank(ctx);
  pool.input = last(self.dims(), n);
  pool.kernel = expanded(ctx, "kernel_size", n, {});
  pool.stride = expanded(ctx, "stride", n, pool.kernel);
  pool.padding = expanded(ctx, "padding", n, Dims(n, 0));
  pool.dilation = expanded(ctx, "dilation", n, Dims(n, 1));
  for (size_t i = 0; i < n; ++i) pool.output.push_back(output_size(pool, i, ctx.flag("ceil_mode")));
  return pool;
}

// Adaptive pooling whose sizes divide is pooling with equal windows side by side.
std::optional<Pooling> equal_windows(const Dims& input, const Dims& output) {
  Pooling pool;
  pool.spatial = input.size();
  pool.input = input;
  pool.output = output;
  for (size_t i = 0; i < input.size(); ++i) {
    if (output[i] == 0 || input[i] % output[i] != 0) return std::nullopt;
    pool.kernel.push_back(input[i] / output[i]);
  }
  pool.stride = pool.kernel;
  pool.padding = Dims(input.size(), 0);
  pool.dilation = Dims(input.size(), 1);
  return pool;
}

// Calls `visit` with every position in the window, in row-major order.
void for_each_position(const Pooling& pool, const std::function<void(const Dims&)>& visit) {
  Dims position(pool.spatial, 0);
  for (int64_t count = pool.window_size(); count > 0; --count) {
    visit(position);
    for (size_t i = pool.spatial; i-- > 0;) {
      if (++position[i] < pool.kernel[i]) break;
      position[i] = 0;
    }
  }
}

// The input with `fill` around it, so that every window lies inside.
Value pad_input(Builder& b, const Pooling& pool, Value x, Value fill) {
  Dims high;
  for (size_t i = 0; i < pool.spatial; ++i) high.push_back(std::max<int64_t>(pool.high(i), 0));
  return b.pad(x, fill, with_leading(x.rank(), pool.padding, 0), with_leading(x.rank(), high, 0));
}

// What every window has at `position`, from the padded input.
Value slice_position(Builder& b, const Pooling& pool, Value padded, const Dims& position) {
  Dims starts(padded.dims().size(), 0);
  Dims limits = padded.dims();
  const size_t first = starts.size() - pool.spatial;
  for (size_t i = 0; i < pool.spatial; ++i) {
    starts[first + i] = position[i] * pool.dilation[i];
    limits[first + i] = starts[first + i] + (pool.output[i] - 1) * pool.stride[i] + 1;
  }
  return b.slice(padded, starts, limits, with_leading(padded.rank(), pool.stride, 1));
}

// The reverse: `x` has a value for every window, which goes to the window's `position` in the input; 0 elsewhere.
Value place_position(Builder& b, const Pooling& pool, Value x, const Dims& position) {
  Dims low, high, interior;
  for (size_t i = 0; i < pool.spatial; ++i) {
    low.push_back(position[i] * pool.dilation[i] - pool.padding[i]);
    interior.push_back(pool.stride[i] - 1);
    high.push_back(pool.input[i] - low[i] - (pool.output[i] - 1) * pool.stride[i] - 1);
  }
  return b.pad(x, b.constant(0, x.dtype()), with_leading(x.rank(), low, 0), with_leading(x.rank(), high, 0),
               with_leading(x.rank(), interior, 0));
}

// For windows that do not overlap: every input element gets the value of the window that starts at or before it within
// one stride, or `fill` after the last window.
Value spread_windows(Builder& b, const Pooling& pool, Value x, Value fill) {
  const auto leading = x.rank() - static_cast<int64_t>(pool.spatial);
  Dims blocks(x.dims().begin(), x.dims().begin() + leading);
  Dims merged = blocks, positions;
  for (int64_t i = 0; i < leading; ++i) positions.push_back(i);
  Dims low, high;
  for (size_t i = 0; i < pool.spatial; ++i) {
    positions.push_back(static_cast<int64_t>(blocks.size()));
    blocks.insert(blocks.end(), {pool.output[i], pool.stride[i]});
    merged.push_back(pool.output[i] * pool.stride[i]);
    low.push_back(-pool.padding[i]);
    high.push_back(pool.input[i] + pool.padding[i] - merged.back());
  }
  const Value repeated = b.reshape(b.broadcast_in_dim(x, blocks, positions), merged);
  return b.pad(repeated, fill, with_leading(x.rank(), low, 0), with_leading(x.rank(), high, 0));
}

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

// --- maximum
// ----------------------------------------------------------------------------------------------------------

// Region over (value, index) pairs that follows ATen's CPU kernel: the last NaN, else the first maximum.
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

Values max_pool(Builder& b, const Pooling& pool, Value x) {
  const Dims dims = replace_last(x.dims(), pool.output);
  if (product(dims) == 0) return {b.splat(0, {x.dtype(), dims}), b.splat(0, {DType::kS64, dims})};
  const Values result =
      pool.window_size() <= kMaxUnrolled ? max_pool_unrolled(b, pool, x) : max_pool_windowed(b, pool, x);
  return {result[0], b.convert(result[1], DType::kS64)};
}

Values lower_max_pool(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  return max_pool(ctx.b, pooling(ctx, self), self);
}

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
  const Dims leading(input_dims.begin(), input_dims.end() - static_cast<int64_t>(spatial));
  return scatter_into_planes(b, updates, indices, leading, last(input_dims, spatial),
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

Value max_pool_backward(Builder& b, const std::optional<Pooling>& pool, Value grad, Value indices, Value self,
                        size_t spatial) {
  const Value wide = b.convert(grad, accumulate_dtype(grad.dtype()));
  Value result;
  if (grad.numel() == 0 || self.numel() == 0) {
    result = b.splat(0, self.type());
  } else if (pool && !pool->is_overlapping()) {
    result = max_backward_apart(b, *pool, wide, b.convert(indices, pool->index_dtype()));
  } else if (pool && pool->window_size() <= kMaxUnrolled) {
    result = max_backward_overlapping(b, *pool, wide, b.convert(indices, pool->index_dtype()));
  } else {
    result = scatter_add_into_planes(b, wide, indices, self.dims(), spatial);
  }
  return b.convert(result, self.dtype());
}

Values lower_max_pool_backward(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  return {max_pool_backward(ctx.b, pooling(ctx, self), ctx.tensor("grad_output"), ctx.tensor("indices"), self,
                            spatial_rank(ctx))};
}

Values lower_max_unpool(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const size_t spatial = spatial_rank(ctx);
  const Dims leading(self.dims().begin(), self.dims().end() - static_cast<int64_t>(spatial));
  return {scatter_into_planes(b, self, ctx.tensor("indices"), leading, ctx.ints("output_size"),
                              [](const Values& pair) { return Values{pair[1]}; })};
}

// --- average
// ----------------------------------------------------------------------------------------------------------

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

Value sum_windows(Builder& b, const Pooling& pool, Value x) {
  if (pool.window_size() <= kMaxUnrolled) {
    const Value padded = pad_input(b, pool, x, b.constant(0, x.dtype()));
    Value total;
    for_each_position(pool, [&](const Dims& position) {
      const Value term = slice_position(b, pool, padded, position);
      total = total ? b.add(total, term) : term;
    });
    return total;
  }
  Window window{with_leading(x.rank(), pool.kernel, 1), with_leading(x.rank(), pool.stride, 1), {}, {}, {}};
  window.padding.resize(x.dims().size() - pool.spatial, {0, 0});
  for (size_t i = 0; i < pool.spatial; ++i) window.padding.emplace_back(pool.padding[i], pool.high(i));
  return b.reduce_window(Reduction::kAdd, x, window);
}

// Gives every input element the sum over the windows that cover it.
Value sum_windows_backward(Builder& b, const Pooling& pool, Value grad) {
  if (pool.kernel == pool.stride) return spread_windows(b, pool, grad, b.constant(0, grad.dtype()));
  if (pool.window_size() <= kMaxUnrolled) {
    Value total;
    for_each_position(pool, [&](const Dims& position) {
      const Value term = place_position(b, pool, grad, position);
      total = total ? b.add(total, term) : term;
    });
    return total;
  }
  // A window of the kernel's size slides over the gradients, spaced out by the stride.
  Window window{with_leading(grad.rank(), pool.kernel, 1), {}, with_leading(grad.rank(), pool.stride, 1), {}, {}};
  window.padding.resize(grad.dims().size() - pool.spatial, {0, 0});
  for (size_t i = 0; i < pool.spatial; ++i) {
    const int64_t low = pool.kernel[i] - 1 - pool.padding[i];
    const int64_t spaced = (pool.output[i] - 1) * pool.stride[i] + 1;
    window.padding.emplace_back(low, pool.input[i] + pool.kernel[i] - 1 - low - spaced);
  }
  return b.reduce_window(Reduction::kAdd, grad, window);
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

// --- adaptive: window o of a dimension is [floor(o * input / output), ceil((o + 1) * input / output))
// -----------------

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
  const Dims output = expanded(ctx, "output_size", n, {});
  const Dims input = last(self.dims(), n);
  const Dims dims = replace_last(self.dims(), output);
  if (product(dims) == 0) return {b.splat(0, {self.dtype(), dims})};
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
  const Dims input = last(self.dims(), n);
  const Dims output = last(grad.dims(), n);
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
  const Dims output = expanded(ctx, "output_size", n, {});
  const Dims input = last(self.dims(), n);
  if (const auto pool = equal_windows(input, output)) return max_pool(b, *pool, self);
  const Dims dims = replace_last(self.dims(), output);
  if (product(dims) == 0) return {b.splat(0, {self.dtype(), dims}), b.splat(0, {DType::kS64, dims})};

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
  const auto pool = equal_windows(last(self.dims(), n), last(grad.dims(), n));
  return {max_pool_backward(ctx.b, pool, grad, ctx.tensor("indices"), self, n)};
}

}  // namespace

const OpTable& pool_ops() {
  static const OpTable table = {
      {.name = "aten::max_pool2d_with_indices", .lower = lower_max_pool},
      {.name = "aten::max_pool3d_with_indices", .lower = lower_max_pool},
      {.name = "aten::max_pool2d_with_indices_backward", .lower = lower_max_pool_backward},
      {.name = "aten::max_pool3d_with_indices_backward", .lower = lower_max_pool_backward},
      {.name = "aten::max_unpool2d", .lower = lower_max_unpool},
      {.name = "aten::max_unpool3d", .lower = lower_max_unpool},
      {.name = "aten::avg_pool2d", .lower = lower_avg_pool},
      {.name = "aten::avg_pool3d", .lower = lower_avg_pool},
      {.name = "aten::avg_pool2d_backward", .lower = lower_avg_pool_backward},
      {.name = "aten::avg_pool3d_backward", .lower = lower_avg_pool_backward},
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
