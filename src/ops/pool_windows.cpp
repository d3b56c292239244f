#include "ops/pool_windows.h"

#include <algorithm>

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Window;

size_t spatial_rank(const LoweringContext& ctx) { return ctx.name().find("3d") != std::string_view::npos ? 3 : 2; }

Dims leading_dims(const Dims& dims, size_t spatial) {
  return Dims(dims.begin(), dims.end() - static_cast<int64_t>(spatial));
}

Dims spatial_dims(const Dims& dims, size_t spatial) {
  return Dims(dims.end() - static_cast<int64_t>(spatial), dims.end());
}

Dims replace_last(Dims dims, const Dims& values) {
  std::copy(values.begin(), values.end(), dims.end() - static_cast<int64_t>(values.size()));
  return dims;
}

Dims with_leading(int64_t rank, const Dims& values, int64_t fill) {
  return replace_last(Dims(static_cast<size_t>(rank), fill), values);
}

Dims spatial_argument(const LoweringContext& ctx, std::string_view name, const Dims& fallback) {
  const Dims values = ctx.ints(name);
  if (values.empty()) return fallback;
  return values.size() == 1 ? Dims(spatial_rank(ctx), values[0]) : values;
}

namespace {

// at::native::pooling_output_shape
int64_t output_size(const Pooling& pool, size_t i, bool ceil_mode) {
  const int64_t span = pool.input[i] + 2 * pool.padding[i] - pool.reach(i) - 1 + (ceil_mode ? pool.stride[i] - 1 : 0);
  int64_t size = (span >= 0 ? span / pool.stride[i] : -1) + 1;
  if (ceil_mode && (size - 1) * pool.stride[i] >= pool.input[i] + pool.padding[i]) --size;
  return size;
}

}  // namespace

Pooling pooling(LoweringContext& ctx, Value self) {
  Pooling pool;
  const size_t n = pool.spatial = spatial_rank(ctx);
  pool.input = spatial_dims(self.dims(), n);
  pool.kernel = spatial_argument(ctx, "kernel_size");
  pool.stride = spatial_argument(ctx, "stride", pool.kernel);
  pool.padding = spatial_argument(ctx, "padding", Dims(n, 0));
  pool.dilation = spatial_argument(ctx, "dilation", Dims(n, 1));
  for (size_t i = 0; i < n; ++i) pool.output.push_back(output_size(pool, i, ctx.flag("ceil_mode")));
  return pool;
}

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

Value pad_input(Builder& b, const Pooling& pool, Value x, Value fill) {
  Dims high;
  for (size_t i = 0; i < pool.spatial; ++i) high.push_back(std::max<int64_t>(pool.high(i), 0));
  return b.pad(x, fill, with_leading(x.rank(), pool.padding, 0), with_leading(x.rank(), high, 0));
}

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

Value spread_windows(Builder& b, const Pooling& pool, Value x, Value fill) {
  Dims low, high;
  for (size_t i = 0; i < pool.spatial; ++i) {
    low.push_back(-pool.padding[i]);
    high.push_back(pool.input[i] + pool.padding[i] - pool.output[i] * pool.stride[i]);
  }
  const Value repeated = b.repeat(x, with_leading(x.rank(), pool.stride, 1));
  return b.pad(repeated, fill, with_leading(x.rank(), low, 0), with_leading(x.rank(), high, 0));
}

Value sum_windows(Builder& b, const Pooling& pool, Value x) {
  if (pool.window_size() <= kMaxUnrolledWindow) {
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

Value sum_windows_backward(Builder& b, const Pooling& pool, Value grad) {
  if (pool.kernel == pool.stride) return spread_windows(b, pool, grad, b.constant(0, grad.dtype()));
  if (pool.window_size() <= kMaxUnrolledWindow) {
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

}  // namespace torch_pjrt
