// Convolution in any number of spatial dimensions, grouped, dilated and transposed, and its backward.
//
// ATen's "convolution" is a correlation: input [N, C, *], weight [O, C / groups, *] -> output [N, O, *]. Everything
// here is one of three maps: the correlation itself, its gradient with respect to the input (which is also the forward
// of a transposed convolution) and its gradient with respect to the weight.
#include "ops/depthwise.h"
#include "ops/host_call.h"
#include "ops/host_kernel.h"
#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::ConvDims;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;
using stablehlo::Window;

Dims iota(int64_t first, int64_t count) {
  Dims dims;
  for (int64_t i = 0; i < count; ++i) dims.push_back(first + i);
  return dims;
}

// XLA's CPU backend takes a slow path for feature and batch groups; up to this many groups become convolutions of their
// own.
constexpr int64_t kMaxSplitGroups = 32;

Dims spatial_dims(Value x) { return Dims(x.dims().begin() + 2, x.dims().end()); }

// Tensors [N, C, *], kernels with their output features first.
ConvDims conv_dims(size_t spatial) {
  ConvDims dims;
  dims.input_spatial = dims.kernel_spatial = dims.output_spatial = iota(2, static_cast<int64_t>(spatial));
  return dims;
}

// Attributes of a convolution, one number for each spatial dimension.
struct Convolution {
  Dims stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
  size_t spatial;

  explicit Convolution(LoweringContext& ctx, Value weight)
      : transposed(ctx.flag("transposed")), groups(ctx.integer("groups")), spatial(weight.dims().size() - 2) {
    stride = per_dimension(ctx, "stride");
    padding = per_dimension(ctx, "padding");
    dilation = per_dimension(ctx, "dilation");
    output_padding = per_dimension(ctx, "output_padding");
  }

  // Input positions between the first and the last element of the kernel.
  int64_t reach(size_t i, int64_t kernel) const { return dilation[i] * (kernel - 1); }

  Dims output_size(const Dims& input, const Dims& kernel) const {
    Dims size;
    for (size_t i = 0; i < spatial; ++i) {
      const int64_t twice = 2 * padding[i];
      size.push_back(transposed ? (input[i] - 1) * stride[i] - twice + reach(i, kernel[i]) + output_padding[i] + 1
                                : (input[i] + twice - reach(i, kernel[i]) - 1) / stride[i] + 1);
    }
    return size;
  }

  // The same convolution of a single group.
  Convolution without_groups() const {
    Convolution conv = *this;
    conv.groups = 1;
    return conv;
  }
  bool is_split() const { return groups > 1 && groups <= kMaxSplitGroups; }

  // Where the kernel of a correlation lies on its input.
  Pooling windows(const Dims& input, const Dims& output, const Dims& kernel) const {
    return {input, output, kernel, stride, padding, dilation, spatial};
  }
  bool is_depthwise(Value weight) const {
    return groups > 1 && weight.dim(1) == 1 &&
           product(torch_pjrt::spatial_dims(weight.dims(), spatial)) <= kMaxUnrolledWindow;
  }

 private:
  Dims per_dimension(LoweringContext& ctx, std::string_view name) const {
    const Dims values = ctx.ints(name);
    return values.size() == 1 ? Dims(spatial, values[0]) : values;
  }
};

// One of the three maps for each group of `x` along `x_dim` and `y` along `y_dim`, joined along `dim`.
template <typename Map>
Value for_each_group(Builder& b, const Convolution& conv, Value x, int64_t x_dim, Value y, int64_t y_dim, int64_t dim,
                     const Map& map) {
  const Convolution single = conv.without_groups();
  const int64_t x_size = x.dim(x_dim) / conv.groups;
  const int64_t y_size = y.dim(y_dim) / conv.groups;
  Values parts;
  for (int64_t i = 0; i < conv.groups; ++i) {
    parts.push_back(map(single, b.slice_dim(x, x_dim, i * x_size, (i + 1) * x_size),
                        b.slice_dim(y, y_dim, i * y_size, (i + 1) * y_size)));
  }
  return b.concatenate(parts, dim);
}

// output [N, O, output_size] of input [N, C, *] and weight [O, C / groups, *].
Value correlate(Builder& b, const Convolution& conv, Value input, Value weight, const Dims& output_size) {
  if (conv.is_depthwise(weight)) {
    return depthwise_correlate(b, conv.windows(spatial_dims(input), output_size, spatial_dims(weight)), input, weight);
  }
  if (conv.is_split()) {
    return for_each_group(b, conv, input, 1, weight, 0, 1, [&](const Convolution& single, Value x, Value w) {
      return correlate(b, single, x, w, output_size);
    });
  }
  Window window;
  window.strides = conv.stride;
  window.window_dilations = conv.dilation;
  for (size_t i = 0; i < conv.spatial; ++i) {
    const int64_t low = conv.padding[i];
    const int64_t length = input.dim(i + 2);
    const int64_t reach = conv.reach(i, weight.dim(i + 2));
    // The same on both sides where that gives the size wanted: a negative high padding may cost XLA's fast path.
    const bool is_symmetric = (length + 2 * low - reach - 1) / conv.stride[i] + 1 == output_size[i];
    window.padding.emplace_back(low,
                                is_symmetric ? low : (output_size[i] - 1) * conv.stride[i] + reach + 1 - length - low);
  }
  return b.convolution(input, weight, window, conv_dims(conv.spatial), conv.groups);
}

// [N, C, input_size], the gradient of `correlate` with respect to its input: a correlation of the gradient, spaced out
// by the stride, with the reversed kernel.
Value input_gradient(Builder& b, const Convolution& conv, Value grad, Value weight, const Dims& input_size) {
  if (conv.is_depthwise(weight)) {
    const Pooling windows = conv.windows(input_size, spatial_dims(grad), spatial_dims(weight));
    return depthwise_input_gradient(b, windows, grad, weight, conv.groups);
  }
  if (conv.is_split()) {
    return for_each_group(b, conv, grad, 1, weight, 0, 1, [&](const Convolution& single, Value x, Value w) {
      return input_gradient(b, single, x, w, input_size);
    });
  }
  Window window;
  window.base_dilations = conv.stride;
  window.window_dilations = conv.dilation;
  for (size_t i = 0; i < conv.spatial; ++i) {
    const int64_t reach = conv.reach(i, weight.dim(i + 2));
    const int64_t spaced = (grad.dim(i + 2) - 1) * conv.stride[i] + 1;
    const int64_t low = reach - conv.padding[i];
    window.padding.emplace_back(low, input_size[i] + reach - spaced - low);
  }
  // [groups * O, C, *] -> [O, groups * C, *]
  Value kernel = weight;
  if (conv.groups > 1) {
    Dims split = weight.dims();
    split[0] /= conv.groups;
    split.insert(split.begin(), conv.groups);
    Dims permutation = iota(0, static_cast<int64_t>(split.size()));
    std::swap(permutation[0], permutation[1]);
    Dims merged = weight.dims();
    merged[0] /= conv.groups;
    merged[1] *= conv.groups;
    kernel = b.reshape(b.transpose(b.reshape(weight, split), permutation), merged);
  }
  ConvDims dims = conv_dims(conv.spatial);
  dims.kernel_input_feature = 0;
  dims.kernel_output_feature = 1;
  return b.convolution(grad, b.reverse(kernel, dims.kernel_spatial), window, dims, conv.groups);
}

// The gradient of `correlate` with respect to its weight: a correlation of the input with the gradient, in which batch
// and features trade places, and stride and dilation too.
Value weight_gradient(Builder& b, const Convolution& conv, Value input, Value grad, const Dims& weight_dims) {
  if (conv.is_split() && weight_dims[1] > 1) {
    return for_each_group(b, conv, input, 1, grad, 1, 0, [&](const Convolution& single, Value x, Value g) {
      return weight_gradient(b, single, x, g, weight_dims);
    });
  }
  Window window;
  window.strides = conv.dilation;
  window.window_dilations = conv.stride;
  for (size_t i = 0; i < conv.spatial; ++i) {
    const int64_t span = (grad.dim(i + 2) - 1) * conv.stride[i] + 1;
    const int64_t needed = conv.reach(i, weight_dims[i + 2]) + span;
    window.padding.emplace_back(conv.padding[i], needed - input.dim(i + 2) - conv.padding[i]);
  }
  ConvDims dims = conv_dims(conv.spatial);
  dims.input_batch = 1;
  dims.input_feature = 0;
  dims.output_batch = 1;
  dims.output_feature = 0;
  dims.kernel_input_feature = 0;
  dims.kernel_output_feature = 1;
  return b.convolution(input, grad, window, dims, 1, conv.groups);
}

std::string joined(const Dims& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text;
}

// ATen's check_shape_forward, for processes where no meta kernel has checked before.
void check_forward(const Convolution& conv, Value input, Value weight) {
  TP_USER_CHECK(input.rank() == weight.rank(), kInvalidArgument, "Expected ", weight.rank(), "-dimensional input for ",
                weight.rank(), "-dimensional weight ", to_string(weight.dims()), ", but got ", input.rank(),
                "-dimensional input of size ", to_string(input.dims()), " instead");
  const int64_t channels = conv.transposed ? weight.dim(0) : weight.dim(1) * conv.groups;
  TP_USER_CHECK(input.dim(1) == channels, kInvalidArgument, "Given ",
                conv.transposed ? "transposed=1" : "groups=", conv.transposed ? "" : std::to_string(conv.groups),
                ", weight of size ", to_string(weight.dims()), ", expected input", to_string(input.dims()), " to have ",
                channels, " channels, but got ", input.dim(1), " channels instead");
  if (conv.transposed) return;
  Dims padded, kernel;
  bool fits = true;
  for (size_t i = 0; i < conv.spatial; ++i) {
    padded.push_back(input.dim(i + 2) + 2 * conv.padding[i]);
    kernel.push_back(conv.reach(i, weight.dim(i + 2)) + 1);
    fits = fits && padded[i] >= kernel[i];
  }
  TP_USER_CHECK(fits, kInvalidArgument, "Calculated padded input size per channel: (", joined(padded),
                "). Kernel size: (", joined(kernel), "). Kernel size can't be greater than actual input size");
}

// One spatial dimension is a plane of height 1: PyTorch knows its features-last order only of planes and volumes.
HostCall start_call(Builder& b, std::string_view op, const Convolution& conv) {
  HostCall call(b, op);
  if (conv.spatial == 1) call.as_planes();
  return call;
}

HostCall& add_attributes(HostCall& call, const Convolution& conv) {
  const auto spatial = [&](Dims values, int64_t of_height) {
    if (conv.spatial == 1) values.insert(values.begin(), of_height);
    return values;
  };
  call.integers(spatial(conv.stride, 1)).integers(spatial(conv.padding, 0)).integers(spatial(conv.dilation, 1));
  return call.attribute(conv.transposed).integers(spatial(conv.output_padding, 0)).integer(conv.groups);
}

Value host_convolution(Builder& b, const Convolution& conv, Value input, Value weight, const Dims& output) {
  const Dims order = features_last(input.rank());
  HostCall call = start_call(b, "aten::convolution", conv);
  add_attributes(call.tensor(input, order).tensor(weight).none(), conv);
  return call.result({input.dtype(), output}, order).emit()[0];
}

// Gradients of input and weight, where the mask asks for them.
Values host_convolution_backward(Builder& b, const Convolution& conv, Value grad, Value input, Value weight,
                                 const std::vector<bool>& mask) {
  const Dims order = features_last(input.rank());
  HostCall call = start_call(b, "aten::convolution_backward", conv);
  add_attributes(call.tensor(grad, order).tensor(input, order).tensor(weight).none(), conv);
  call.attribute(std::vector<bool>{mask[0], mask[1], false});
  if (mask[0]) {
    call.result(input.type(), order);
  } else {
    call.undefined_result();
  }
  if (mask[1]) {
    call.result(weight.type());
  } else {
    call.undefined_result();
  }
  return call.undefined_result().emit();
}

Values lower_convolution(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value input = ctx.tensor("input");
  const Value weight = ctx.tensor("weight");
  const Convolution conv(ctx, weight);
  check_forward(conv, input, weight);
  const Dims size = conv.output_size(spatial_dims(input), spatial_dims(weight));
  Value output;
  if (input.numel() == 0 || weight.numel() == 0) {
    Dims dims{input.dim(0), conv.transposed ? weight.dim(1) * conv.groups : weight.dim(0)};
    dims.insert(dims.end(), size.begin(), size.end());
    output = b.splat(0, {input.dtype(), dims});
  } else if (prefers_host_convolution(input.type(), weight.type())) {
    Dims dims{input.dim(0), conv.transposed ? weight.dim(1) * conv.groups : weight.dim(0)};
    dims.insert(dims.end(), size.begin(), size.end());
    output = host_convolution(b, conv, input, weight, dims);
  } else {
    output = conv.transposed ? input_gradient(b, conv, input, weight, size) : correlate(b, conv, input, weight, size);
  }
  if (ctx.has("bias")) {
    output = b.add(output, b.broadcast_in_dim(ctx.operand("bias", output.dtype()), output.dims(), {1}));
  }
  return {output};
}

// Gradients of input and weight, where the mask asks for them; the third result is left open.
Values backward_maps(Builder& b, const Convolution& conv, Value grad, Value input, Value weight,
                     const std::vector<bool>& mask) {
  Values result(3);
  if (!mask[0] && !mask[1]) return result;
  if (grad.numel() == 0 || input.numel() == 0 || weight.numel() == 0) {
    if (mask[0]) result[0] = b.splat(0, input.type());
    if (mask[1]) result[1] = b.splat(0, weight.type());
    return result;
  }
  if (prefers_host_convolution(input.type(), weight.type())) {
    return host_convolution_backward(b, conv, grad, input, weight, mask);
  }
  const Dims size = spatial_dims(input);
  if (mask[0]) {
    result[0] = conv.transposed ? correlate(b, conv, grad, weight, size) : input_gradient(b, conv, grad, weight, size);
  }
  if (mask[1]) {
    result[1] = conv.transposed ? weight_gradient(b, conv, grad, input, weight.dims())
                                : weight_gradient(b, conv, input, grad, weight.dims());
  }
  return result;
}

Values lower_convolution_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const std::vector<bool> mask = ctx.bools("output_mask");
  const Value grad = ctx.tensor("grad_output");
  const Value input = ctx.tensor("input");
  const Value weight = ctx.tensor("weight");
  const Convolution conv(ctx, weight);
  Values result = backward_maps(b, conv, grad, input, weight, mask);
  if (mask[2]) {
    Dims reduced = iota(1, grad.rank() - 1);
    reduced[0] = 0;
    const Value sum = b.reduce(Reduction::kAdd, b.convert(grad, accumulate_dtype(grad.dtype())), reduced);
    result[2] = b.convert(sum, grad.dtype());
  }
  return result;
}

}  // namespace

const OpTable& conv_ops() {
  static const OpTable table = {
      {.name = "aten::convolution", .lower = lower_convolution},
      {.name = "aten::convolution_overrideable", .lower = lower_convolution},
      {.name = "aten::convolution_backward", .lower = lower_convolution_backward},
      {.name = "aten::convolution_backward_overrideable", .lower = lower_convolution_backward},
  };
  return table;
}

}  // namespace torch_pjrt
