#include "ops/depthwise.h"

#include "ops/promotion.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;

namespace {

// weight[:, 0, position], repeated over the batch and the spatial dimensions of `dims`.
Value weight_at(Builder& b, Value weight, const Dims& position, const Dims& dims) {
  Dims starts{0, 0};
  Dims limits{weight.dim(0), 1};
  for (const int64_t i : position) {
    starts.push_back(i);
    limits.push_back(i + 1);
  }
  return b.broadcast_in_dim(b.reshape(b.slice(weight, starts, limits), {weight.dim(0)}), dims, {1});
}

// [N, C, *] -> [N, C, multiplier, *]
Dims split_channels(Value x, int64_t multiplier) {
  Dims dims = x.dims();
  dims[1] /= multiplier;
  dims.insert(dims.begin() + 2, multiplier);
  return dims;
}

// Every channel `multiplier` times, side by side.
Value repeat_channels(Builder& b, Value x, int64_t multiplier) {
  Dims counts(x.dims().size(), 1);
  counts[1] = multiplier;
  return b.repeat(x, counts);
}

}  // namespace

Value depthwise_correlate(Builder& b, const Pooling& windows, Value input, Value weight) {
  const DType dtype = accumulate_dtype(input.dtype());
  const Value x = repeat_channels(b, b.convert(input, dtype), weight.dim(0) / input.dim(1));
  const Value kernel = b.convert(weight, dtype);
  const Value padded = pad_input(b, windows, x, b.constant(0, dtype));
  Value total;
  for_each_position(windows, [&](const Dims& position) {
    const Value slice = slice_position(b, windows, padded, position);
    const Value term = b.multiply(slice, weight_at(b, kernel, position, slice.dims()));
    total = total ? b.add(total, term) : term;
  });
  return b.convert(total, input.dtype());
}

Value depthwise_input_gradient(Builder& b, const Pooling& windows, Value grad, Value weight, int64_t channels) {
  const DType dtype = accumulate_dtype(grad.dtype());
  const Value kernel = b.convert(weight, dtype);
  // The gradient spaced out by the stride; then input element i is touched by kernel position k at i + reach - k *
  // dilation.
  Dims low, high, interior;
  for (size_t i = 0; i < windows.spatial; ++i) {
    low.push_back(windows.reach(i) - windows.padding[i]);
    interior.push_back(windows.stride[i] - 1);
    const int64_t spaced = (windows.output[i] - 1) * windows.stride[i] + 1;
    high.push_back(windows.input[i] + windows.reach(i) - spaced - low.back());
  }
  const Value padded = b.pad(b.convert(grad, dtype), b.constant(0, dtype), with_leading(grad.rank(), low, 0),
                             with_leading(grad.rank(), high, 0), with_leading(grad.rank(), interior, 0));
  Pooling slides = windows;
  slides.output = windows.input;
  slides.stride = Dims(windows.spatial, 1);
  Value total;
  for_each_position(windows, [&](const Dims& position) {
    Dims mirrored;
    for (size_t i = 0; i < windows.spatial; ++i) mirrored.push_back(windows.kernel[i] - 1 - position[i]);
    const Value slice = slice_position(b, slides, padded, mirrored);
    const Value term = b.multiply(slice, weight_at(b, kernel, position, slice.dims()));
    total = total ? b.add(total, term) : term;
  });
  const int64_t multiplier = weight.dim(0) / channels;
  if (multiplier > 1) total = b.reduce(Reduction::kAdd, b.reshape(total, split_channels(total, multiplier)), {2});
  return b.convert(total, grad.dtype());
}

}  // namespace torch_pjrt
