// Joining, repeating, reordering and padding along dimensions.
#include "ops/indexing.h"
#include "ops/registry.h"
#include "ops/resample.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

namespace {

Values lower_cat(LoweringContext& ctx) {
  const DType dtype = ctx.result_type({"tensors"});
  const Values tensors = ctx.tensors("tensors");
  int64_t rank = 1;
  for (const Value& tensor : tensors) rank = std::max(rank, tensor.rank());
  Values parts;
  for (size_t i = 0; i < tensors.size(); ++i) {
    // An empty 1-D tensor joins anything.
    if (tensors[i].dims() == Dims{0} && (rank != 1 || tensors.size() > 1)) continue;
    parts.push_back(ctx.operand("tensors", i, dtype));
  }
  if (parts.empty()) return {ctx.operand("tensors", 0, dtype)};
  return {ctx.b.concatenate(parts, wrap_dim(ctx.integer("dim", 0), rank))};
}

Values lower_stack(LoweringContext& ctx) {
  const DType dtype = ctx.result_type({"tensors"});
  const int64_t dim = wrap_dim(ctx.integer("dim", 0), ctx.tensors("tensors")[0].rank() + 1);
  Values parts;
  for (size_t i = 0; i < ctx.size("tensors"); ++i) {
    parts.push_back(ctx.b.unsqueeze(ctx.operand("tensors", i, dtype), dim));
  }
  return {ctx.b.concatenate(parts, dim)};
}

Values lower_flip(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  if (self.rank() == 0) return {self};
  Dims dims;
  for (const int64_t dim : ctx.ints("dims")) dims.push_back(wrap_dim(dim, self.rank()));
  return {ctx.b.reverse(self, dims)};
}

Value roll_dim(Builder& b, Value x, int64_t dim, int64_t shift) {
  const int64_t size = x.dim(dim);
  if (size == 0) return x;
  const int64_t first = ((-shift) % size + size) % size;
  if (first == 0) return x;
  return b.concatenate({b.slice_dim(x, dim, first, size), b.slice_dim(x, dim, 0, first)}, dim);
}

Values lower_roll(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const Dims shifts = ctx.ints("shifts"), dims = ctx.ints("dims");
  if (dims.empty()) {
    return {b.reshape(roll_dim(b, b.reshape(self, {self.numel()}), 0, shifts.at(0)), self.dims())};
  }
  if (self.rank() == 0) return {self};
  Value x = self;
  for (size_t i = 0; i < dims.size(); ++i) x = roll_dim(b, x, wrap_dim(dims[i], x.rank()), shifts.at(i));
  return {x};
}

Values lower_repeat(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const Dims repeats = ctx.ints("repeats");
  const size_t added = repeats.size() - self.dims().size();
  Dims pairs, result, kept;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const int64_t size = i < added ? 1 : self.dim(static_cast<int64_t>(i - added));
    result.push_back(repeats[i] * size);
    pairs.push_back(repeats[i]);
    if (i < added) continue;
    kept.push_back(std::ssize(pairs));
    pairs.push_back(size);
  }
  return {b.reshape(b.broadcast_in_dim(self, pairs, kept), result)};
}

// `pad` is [low, high] of the last dimension, then of the one before it; negative numbers crop.
Values lower_constant_pad(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const Dims pad = ctx.ints("pad");
  Dims low(self.dims().size(), 0), high = low;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    low[low.size() - 1 - i] = pad[2 * i];
    high[high.size() - 1 - i] = pad[2 * i + 1];
  }
  return {ctx.b.pad(self, ctx.number("value", self.dtype(), 0.0), low, high)};
}

// For each position of a padded line the element it shows.
using PadRule = int64_t (*)(int64_t position, int64_t size);

int64_t reflected(int64_t position, int64_t size) {
  if (position < 0) position = -position;
  return position < size ? position : 2 * (size - 1) - position;
}

int64_t replicated(int64_t position, int64_t size) { return std::clamp<int64_t>(position, 0, size - 1); }

// One table for each padded dimension, the last dimension first, as in `padding`.
std::vector<Taps> pad_taps(const Dims& sizes, const Dims& padding, PadRule rule) {
  std::vector<Taps> all;
  for (size_t i = 0; i < padding.size() / 2; ++i) {
    const int64_t size = sizes[sizes.size() - 1 - i];
    Taps taps(size);
    for (int64_t at = -padding[2 * i]; at < size + padding[2 * i + 1]; ++at) taps.add({{rule(at, size), 1.0}});
    all.push_back(std::move(taps));
  }
  return all;
}

Values pad_by(LoweringContext& ctx, PadRule rule) {
  Value x = ctx.tensor("self");
  const auto all = pad_taps(x.dims(), ctx.ints("padding"), rule);
  for (size_t i = 0; i < all.size(); ++i) x = resample(ctx.b, x, x.rank() - 1 - static_cast<int64_t>(i), all[i]);
  return {x};
}

Values pad_by_backward(LoweringContext& ctx, PadRule rule) {
  Value grad = ctx.tensor("grad_output");
  const auto all = pad_taps(ctx.tensor("self").dims(), ctx.ints("padding"), rule);
  for (size_t i = 0; i < all.size(); ++i) {
    grad = resample(ctx.b, grad, grad.rank() - 1 - static_cast<int64_t>(i), all[i].transposed());
  }
  return {grad};
}

Values lower_reflection_pad(LoweringContext& ctx) { return pad_by(ctx, reflected); }
Values lower_reflection_pad_backward(LoweringContext& ctx) { return pad_by_backward(ctx, reflected); }
Values lower_replication_pad(LoweringContext& ctx) { return pad_by(ctx, replicated); }
Values lower_replication_pad_backward(LoweringContext& ctx) { return pad_by_backward(ctx, replicated); }

// [..., c * r * r, h, w] -> [..., c, h * r, w * r]
Values lower_pixel_shuffle(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const int64_t rank = self.rank(), r = ctx.integer("upscale_factor");
  const int64_t c = self.dim(rank - 3) / (r * r), h = self.dim(rank - 2), w = self.dim(rank - 1);
  const int64_t batch = product(Dims(self.dims().begin(), self.dims().end() - 3));
  Dims result = self.dims();
  result[rank - 3] = c;
  result[rank - 2] = h * r;
  result[rank - 1] = w * r;
  return {b.reshape(b.transpose(b.reshape(self, {batch, c, r, r, h, w}), {0, 1, 4, 2, 5, 3}), result)};
}

Values lower_pixel_unshuffle(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const int64_t rank = self.rank(), r = ctx.integer("downscale_factor");
  const int64_t c = self.dim(rank - 3), h = self.dim(rank - 2) / r, w = self.dim(rank - 1) / r;
  const int64_t batch = product(Dims(self.dims().begin(), self.dims().end() - 3));
  Dims result = self.dims();
  result[rank - 3] = c * r * r;
  result[rank - 2] = h;
  result[rank - 1] = w;
  return {b.reshape(b.transpose(b.reshape(self, {batch, c, h, r, w, r}), {0, 1, 3, 5, 2, 4}), result)};
}

Values lower_channel_shuffle(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const int64_t groups = ctx.integer("groups"), channels = self.dim(1);
  if (self.numel() == 0) return {self};
  const int64_t rest = self.numel() / (self.dim(0) * channels);
  const Value grouped = b.reshape(self, {self.dim(0), groups, channels / groups, rest});
  return {b.reshape(b.transpose(grouped, {0, 2, 1, 3}), self.dims())};
}

// Element j of a line gathers from every window [w * step, w * step + size) that holds it.
Values lower_unfold_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  Value grad = ctx.tensor("grad_in");
  const Dims sizes = ctx.ints("input_sizes");
  if (sizes.empty()) return {b.reshape(grad, {})};
  const int64_t dim = wrap_dim(ctx.integer("dim"), std::ssize(sizes));
  const int64_t size = ctx.integer("size"), step = ctx.integer("step"), windows = grad.dim(dim);
  Dims order;
  for (int64_t i = 0; i + 1 < grad.rank(); ++i) {
    order.push_back(i);
    if (i == dim) order.push_back(grad.rank() - 1);
  }
  Dims merged = sizes;
  merged[dim] = windows * size;
  grad = b.reshape(b.transpose(grad, order), merged);
  Taps taps(windows * size);
  for (int64_t j = 0; j < sizes[dim]; ++j) {
    std::vector<Tap> row;
    for (int64_t w = std::min(j / step, windows - 1); w >= 0 && j - w * step < size; --w) {
      row.push_back({w * size + j - w * step, 1.0});
    }
    taps.add(std::move(row));
  }
  return {resample(b, grad, dim, taps)};
}

// The sliding windows of im2col over the two last dimensions.
struct Patches {
  Dims kernel, dilation, padding, stride;
  int64_t batch, channels, height, width, rows, columns;
  bool is_batched;

  // `sizes` are the image's: [batch,] channels, height, width; `values` has the operator's batch dimensions.
  Patches(LoweringContext& ctx, bool has_batch, int64_t batch_size, int64_t num_channels, int64_t image_height,
          int64_t image_width)
      : kernel(ctx.ints("kernel_size")),
        dilation(ctx.ints("dilation")),
        padding(ctx.ints("padding")),
        stride(ctx.ints("stride")),
        batch(batch_size),
        channels(num_channels),
        height(image_height),
        width(image_width),
        is_batched(has_batch) {
    rows = (height + 2 * padding[0] - dilation[0] * (kernel[0] - 1) - 1) / stride[0] + 1;
    columns = (width + 2 * padding[1] - dilation[1] * (kernel[1] - 1) - 1) / stride[1] + 1;
  }
};

Values lower_im2col(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const int64_t rank = self.rank();
  const Patches p(ctx, rank == 4, rank == 4 ? self.dim(0) : 1, self.dim(rank - 3), self.dim(rank - 2),
                  self.dim(rank - 1));
  const Dims padding = {0, 0, p.padding[0], p.padding[1]};
  const Value image =
      b.pad(b.reshape(self, {p.batch, p.channels, p.height, p.width}), b.constant(0, self.dtype()), padding, padding);
  Values parts;
  for (int64_t i = 0; i < p.kernel[0]; ++i) {
    for (int64_t j = 0; j < p.kernel[1]; ++j) {
      const int64_t top = i * p.dilation[0], left = j * p.dilation[1];
      const Value part =
          b.slice(image, {0, 0, top, left},
                  {p.batch, p.channels, top + (p.rows - 1) * p.stride[0] + 1, left + (p.columns - 1) * p.stride[1] + 1},
                  {1, 1, p.stride[0], p.stride[1]});
      parts.push_back(b.unsqueeze(part, 2));
    }
  }
  Dims result = {p.channels * p.kernel[0] * p.kernel[1], p.rows * p.columns};
  if (p.is_batched) result.insert(result.begin(), p.batch);
  return {b.reshape(b.concatenate(parts, 2), result)};
}

Values lower_col2im(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const Dims output = ctx.ints("output_size"), kernel = ctx.ints("kernel_size");
  const bool has_batch = self.rank() == 3;
  const int64_t kernel_size = product(kernel);
  const Patches p(ctx, has_batch, has_batch ? self.dim(0) : 1, self.dim(self.rank() - 2) / kernel_size, output[0],
                  output[1]);
  const Value columns = b.reshape(self, {p.batch, p.channels, kernel_size, p.rows, p.columns});
  const Value zero = b.constant(0, self.dtype());
  Value image;
  for (int64_t i = 0; i < kernel[0]; ++i) {
    for (int64_t j = 0; j < kernel[1]; ++j) {
      const int64_t at = i * kernel[1] + j, top = i * p.dilation[0], left = j * p.dilation[1];
      const Value part = b.squeeze(b.slice_dim(columns, 2, at, at + 1), 2);
      const int64_t bottom = p.height + 2 * p.padding[0] - top - ((p.rows - 1) * p.stride[0] + 1);
      const int64_t right = p.width + 2 * p.padding[1] - left - ((p.columns - 1) * p.stride[1] + 1);
      // Padding around the image is cropped away at once.
      const Value placed =
          b.pad(part, zero, {0, 0, top - p.padding[0], left - p.padding[1]},
                {0, 0, bottom - p.padding[0], right - p.padding[1]}, {0, 0, p.stride[0] - 1, p.stride[1] - 1});
      image = image ? b.add(image, placed) : placed;
    }
  }
  Dims result = {p.channels, p.height, p.width};
  if (has_batch) result.insert(result.begin(), p.batch);
  return {b.reshape(image, result)};
}

}  // namespace

const OpTable& shape_ops() {
  static const OpTable table = {
      {.name = "aten::cat", .lower = lower_cat},
      {.name = "aten::stack", .lower = lower_stack},
      {.name = "aten::flip", .lower = lower_flip},
      {.name = "aten::roll", .lower = lower_roll},
      {.name = "aten::repeat", .lower = lower_repeat},
      {.name = "aten::constant_pad_nd", .lower = lower_constant_pad},
      {.name = "aten::reflection_pad1d", .lower = lower_reflection_pad},
      {.name = "aten::reflection_pad2d", .lower = lower_reflection_pad},
      {.name = "aten::reflection_pad3d", .lower = lower_reflection_pad},
      {.name = "aten::reflection_pad1d_backward", .lower = lower_reflection_pad_backward},
      {.name = "aten::reflection_pad2d_backward", .lower = lower_reflection_pad_backward},
      {.name = "aten::reflection_pad3d_backward", .lower = lower_reflection_pad_backward},
      {.name = "aten::replication_pad1d", .lower = lower_replication_pad},
      {.name = "aten::replication_pad2d", .lower = lower_replication_pad},
      {.name = "aten::replication_pad3d", .lower = lower_replication_pad},
      {.name = "aten::replication_pad1d_backward", .lower = lower_replication_pad_backward},
      {.name = "aten::replication_pad2d_backward", .lower = lower_replication_pad_backward},
      {.name = "aten::replication_pad3d_backward", .lower = lower_replication_pad_backward},
      {.name = "aten::pixel_shuffle", .lower = lower_pixel_shuffle},
      {.name = "aten::pixel_unshuffle", .lower = lower_pixel_unshuffle},
      {.name = "aten::channel_shuffle", .lower = lower_channel_shuffle},
      {.name = "aten::unfold_backward", .lower = lower_unfold_backward},
      {.name = "aten::im2col", .lower = lower_im2col},
      {.name = "aten::col2im", .lower = lower_col2im},
  };
  return table;
}

}  // namespace torch_pjrt
