// Geometry of pooling: the windows of a call over the last dimensions of a tensor, and sums over them.
//
// A window of few elements is unrolled: one strided slice of the input for each position in the window, combined
// elementwise. XLA fuses and vectorises that, which it does not do for reduce_window and scatter.
#pragma once

#include <functional>
#include <optional>

#include "ops/lowering.h"

namespace torch_pjrt {

// Larger windows take reduce_window and scatter, so that a program stays small.
constexpr int64_t kMaxUnrolledWindow = 64;

// Number of pooled dimensions: 3 for "...3d...", else 2.
size_t spatial_rank(const LoweringContext& ctx);
Dims leading_dims(const Dims& dims, size_t spatial);
Dims spatial_dims(const Dims& dims, size_t spatial);
// `dims` with the last ones replaced.
Dims replace_last(Dims dims, const Dims& values);
// Values for the last dimensions of a tensor of rank `rank`, after `fill` for the leading ones.
Dims with_leading(int64_t rank, const Dims& values, int64_t fill);
// A list argument with one number for each pooled dimension; a single number stands for all, none for `fallback`.
Dims spatial_argument(const LoweringContext& ctx, std::string_view name, const Dims& fallback = {});

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

// The windows that the arguments of a pooling operator over `self` describe.
Pooling pooling(LoweringContext& ctx, stablehlo::Value self);
// Adaptive pooling whose sizes divide is pooling with equal windows side by side.
std::optional<Pooling> equal_windows(const Dims& input, const Dims& output);

// Calls `visit` with every position in the window, in row-major order.
void for_each_position(const Pooling& pool, const std::function<void(const Dims&)>& visit);
// The input with `fill` around it, so that every window lies inside.
stablehlo::Value pad_input(stablehlo::Builder& b, const Pooling& pool, stablehlo::Value x, stablehlo::Value fill);
// What every window has at `position`, from the padded input.
stablehlo::Value slice_position(stablehlo::Builder& b, const Pooling& pool, stablehlo::Value padded,
                                const Dims& position);
// The reverse: `x` has a value for every window, which goes to the window's `position` in the input; 0 elsewhere.
stablehlo::Value place_position(stablehlo::Builder& b, const Pooling& pool, stablehlo::Value x, const Dims& position);
// For windows that do not overlap: every input element gets the value of the window that starts at or before it within
// one stride, or `fill` after the last window.
stablehlo::Value spread_windows(stablehlo::Builder& b, const Pooling& pool, stablehlo::Value x, stablehlo::Value fill);

stablehlo::Value sum_windows(stablehlo::Builder& b, const Pooling& pool, stablehlo::Value x);
// Gives every input element the sum over the windows that cover it.
stablehlo::Value sum_windows_backward(stablehlo::Builder& b, const Pooling& pool, stablehlo::Value grad);

}  // namespace torch_pjrt
