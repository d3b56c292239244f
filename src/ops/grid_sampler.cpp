// grid_sampler_2d and grid_sampler_3d: reading an image at given coordinates.
//
// Along each axis a coordinate becomes a few taps, pixels with a weight and the weight's derivative; a sample is the
// sum over all combinations of the axes' taps. The gradients follow from the same taps.
#include <array>

#include "ops/elementwise.h"
#include "ops/indexing.h"
#include "ops/registry.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

namespace {

enum class Interpolation { kBilinear, kNearest, kBicubic };
enum class Padding { kZeros, kBorder, kReflection };

// Everything of dims [batch, points].
struct AxisTap {
  Expr pixel;  // an integer, as floating; outside [0, size) where the image does not reach
  Expr weight;
  Expr derivative;  // of the weight, by the position
};

// A position in pixels and its derivative by the position before padding: 0 where it was clipped, -1 where reflected.
struct Position {
  Expr at, slope;
};

Position clip(const Position& position, int64_t size) {
  const double last = static_cast<double>(size - 1);
  const Expr inside = (position.at > 0.0) & (position.at < last);
  return {minimum(maximum(position.at, 0.0), last), select(inside, position.slope, 0.0)};
}

// Mirrors at the edges [low, low + span].
Position reflect(const Position& position, double low, double span) {
  if (span == 0.0) return {position.at.like(0.0), position.at.like(0.0)};
  const Expr shifted = position.at - low;
  const Expr distance = abs(shifted);
  const Expr flips = floor(distance / span);
  const Expr extra = distance - flips * span;
  const Expr is_even = fmod(flips, flips.like(2.0)) == 0.0;
  const Expr sign = select(shifted < 0.0, position.slope.like(-1.0), 1.0);
  return {select(is_even, extra + low, span - extra + low), position.slope * select(is_even, sign, -sign)};
}

Position pad_position(const Position& position, int64_t size, Padding padding, bool align_corners) {
  if (padding == Padding::kZeros) return position;
  if (padding == Padding::kBorder) return clip(position, size);
  const double low = align_corners ? 0.0 : -0.5;
  const double span = static_cast<double>(align_corners ? size - 1 : size);
  return clip(reflect(position, low, span), size);
}

// The cubic convolution kernel with a = -0.75 at distances below 1, and from 1 to 2; and their derivatives.
constexpr double kCubic = -0.75;
Expr cubic_near(const Expr& x) { return ((kCubic + 2.0) * x - (kCubic + 3.0)) * x * x + 1.0; }
Expr cubic_far(const Expr& x) { return ((kCubic * x - 5.0 * kCubic) * x + 8.0 * kCubic) * x - 4.0 * kCubic; }
Expr cubic_near_slope(const Expr& x) { return (3.0 * (kCubic + 2.0) * x - 2.0 * (kCubic + 3.0)) * x; }
Expr cubic_far_slope(const Expr& x) { return (3.0 * kCubic * x - 10.0 * kCubic) * x + 8.0 * kCubic; }

struct Sampler {
  Interpolation interpolation;
  Padding padding;
  bool align_corners;

  explicit Sampler(LoweringContext& ctx)
      : interpolation(static_cast<Interpolation>(ctx.integer("interpolation_mode"))),
        padding(static_cast<Padding>(ctx.integer("padding_mode"))),
        align_corners(ctx.flag("align_corners")) {}

  // Coordinates in [-1, 1] to the taps of an axis of `size` pixels.
  std::vector<AxisTap> taps(const Expr& coordinate, int64_t size) const {
    const auto pixels = static_cast<double>(size);
    const double slope = align_corners ? (pixels - 1.0) / 2.0 : pixels / 2.0;
    const Expr at = align_corners ? (coordinate + 1.0) * slope : ((coordinate + 1.0) * pixels - 1.0) / 2.0;
    const Position position{at, at.like(slope)};
    if (interpolation == Interpolation::kBicubic) return cubic_taps(position, size);
    const Position padded = pad_position(position, size, padding, align_corners);
    if (interpolation == Interpolation::kNearest) {
      return {{padded.at.unary("stablehlo.round_nearest_even"), at.like(1.0), at.like(0.0)}};
    }
    const Expr low = floor(padded.at), t = padded.at - low;
    return {{low, 1.0 - t, -padded.slope}, {low + 1.0, t, padded.slope}};
  }

 private:
  // Each tap's pixel is padded by itself.
  std::vector<AxisTap> cubic_taps(const Position& position, int64_t size) const {
    const Expr low = floor(position.at), t = position.at - low;
    const std::array<Expr, 4> weights = {cubic_far(t + 1.0), cubic_near(t), cubic_near(1.0 - t), cubic_far(2.0 - t)};
    const std::array<Expr, 4> slopes = {cubic_far_slope(t + 1.0), cubic_near_slope(t), -cubic_near_slope(1.0 - t),
                                        -cubic_far_slope(2.0 - t)};
    std::vector<AxisTap> taps;
    for (size_t k = 0; k < 4; ++k) {
      const Position pixel{low + (static_cast<double>(k) - 1.0), low};
      taps.push_back({pad_position(pixel, size, padding, align_corners).at, weights[k], slopes[k] * position.slope});
    }
    return taps;
  }
};

// One pixel of each sample; dims [batch, points].
struct Tap {
  Expr index;                    // flat, s32
  Expr is_inside;                // pred
  std::vector<AxisTap> by_axis;  // outermost image axis first

  // The weight, or its derivative by the coordinate of `axis`.
  Expr weight(std::optional<size_t> axis = std::nullopt) const {
    Expr product = is_inside.convert(by_axis[0].weight.dtype());
    for (size_t i = 0; i < by_axis.size(); ++i)
      product = product * (axis == i ? by_axis[i].derivative : by_axis[i].weight);
    return product;
  }
};

struct Image {
  Value flat;  // [batch, channels, pixels]
  Dims sizes;
};

Image flat_image(Builder& b, Value image) {
  const Dims sizes(image.dims().begin() + 2, image.dims().end());
  return {b.reshape(image, {image.dim(0), image.dim(1), product(sizes)}), sizes};
}

std::vector<Tap> all_taps(const Sampler& sampler, const Expr& grid, const Dims& sizes) {
  Builder& b = grid.builder();
  const int64_t rank = std::ssize(sizes), batch = grid.dims()[0], points = grid.value().numel() / batch / rank;
  const Value flat = b.reshape(grid, {batch, points, rank});
  const Expr origin(b, b.splat(0, {index_dtype(product(sizes)), {batch, points}}));
  std::vector<Tap> taps = {{origin, Expr(b, b.splat(true, {DType::kPred, {batch, points}})), {}}};
  for (int64_t axis = 0; axis < rank; ++axis) {
    // The grid's last dimension begins with the innermost axis.
    const int64_t at = rank - 1 - axis, size = sizes[axis];
    const Expr coordinate(b, b.reshape(b.slice_dim(flat, 2, at, at + 1), {batch, points}));
    std::vector<Tap> combined;
    for (const Tap& tap : taps) {
      for (const AxisTap& axis_tap : sampler.taps(coordinate, size)) {
        const Expr inside = (axis_tap.pixel >= 0.0) & (axis_tap.pixel < static_cast<double>(size));
        const Expr pixel = select(inside, axis_tap.pixel, 0.0).convert(origin.dtype());
        Tap next{tap.index * static_cast<double>(size) + pixel, tap.is_inside & inside, tap.by_axis};
        next.by_axis.push_back(axis_tap);
        combined.push_back(std::move(next));
      }
    }
    taps = std::move(combined);
  }
  return taps;
}

// [batch, points] -> [batch, channels, points]
Value over_channels(Builder& b, Value x, int64_t channels) {
  return b.broadcast_in_dim(x, {x.dim(0), channels, x.dim(1)}, {0, 2});
}

// The pixels that `tap` names: [batch, channels, points].
Expr read_pixels(Builder& b, const Image& image, const Tap& tap) {
  return {b, gather_along(b, image.flat, 2, over_channels(b, tap.index, image.flat.dim(1)))};
}

Values lower_grid_sampler(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value input = ctx.tensor("input");
  const DType compute = wide(input.dtype());
  const Image image = flat_image(b, b.convert(input, compute));
  const Expr grid(b, ctx.operand("grid", compute));
  const int64_t channels = input.dim(1);
  const TensorType& output = ctx.output();
  if (output.numel() == 0) return {b.splat(0.0, output)};
  std::optional<Expr> sum;
  for (const Tap& tap : all_taps(Sampler(ctx), grid, image.sizes)) {
    const Expr term = read_pixels(b, image, tap) * Expr(b, over_channels(b, tap.weight(), channels));
    sum = sum ? *sum + term : term;
  }
  return {b.convert(b.reshape(*sum, output.dims), input.dtype())};
}

Value input_gradient(Builder& b, const Image& image, const Expr& grad, const std::vector<Tap>& taps) {
  Value result = b.splat(0.0, image.flat.type());
  for (const Tap& tap : taps) {
    const Value update = grad * Expr(b, over_channels(b, tap.weight(), image.flat.dim(1)));
    result = scatter_along(b, result, 2, over_channels(b, tap.index, image.flat.dim(1)), update,
                           combine_update(b, Reduction::kAdd));
  }
  return result;
}

// [batch, points, axes], innermost axis first as in the grid.
Value grid_gradient(Builder& b, const Image& image, const Expr& grad, const std::vector<Tap>& taps) {
  const size_t rank = image.sizes.size();
  Values by_axis(rank);
  for (const Tap& tap : taps) {
    const Expr along(b, b.reduce(Reduction::kAdd, read_pixels(b, image, tap) * grad, {1}));
    for (size_t axis = 0; axis < rank; ++axis) {
      Value& sum = by_axis[rank - 1 - axis];
      const Value term = along * tap.weight(axis);
      sum = sum ? b.add(sum, term) : term;
    }
  }
  for (Value& sum : by_axis) sum = b.unsqueeze(sum, 2);
  return b.concatenate(by_axis, 2);
}

Values lower_grid_sampler_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value input = ctx.tensor("input"), grid = ctx.tensor("grid");
  const std::vector<bool> mask = ctx.bools("output_mask");
  const DType compute = wide(input.dtype());
  const Image image = flat_image(b, b.convert(input, compute));
  const Value output = ctx.operand("grad_output", compute);
  Values result(2);
  if (output.numel() == 0) {
    if (mask[0]) result[0] = b.splat(0.0, input.type());
    if (mask[1]) result[1] = b.splat(0.0, grid.type());
    return result;
  }
  const Expr grad(b, b.reshape(output, {input.dim(0), input.dim(1), output.numel() / input.dim(0) / input.dim(1)}));
  const auto taps = all_taps(Sampler(ctx), Expr(b, b.convert(grid, compute)), image.sizes);
  if (mask[0]) result[0] = b.convert(b.reshape(input_gradient(b, image, grad, taps), input.dims()), input.dtype());
  if (mask[1]) result[1] = b.convert(b.reshape(grid_gradient(b, image, grad, taps), grid.dims()), grid.dtype());
  return result;
}

}  // namespace

const OpTable& grid_sampler_ops() {
  static const OpTable table = {
      {.name = "aten::grid_sampler_2d", .lower = lower_grid_sampler},
      {.name = "aten::grid_sampler_3d", .lower = lower_grid_sampler},
      {.name = "aten::grid_sampler_2d_backward", .lower = lower_grid_sampler_backward},
      {.name = "aten::grid_sampler_3d_backward", .lower = lower_grid_sampler_backward},
  };
  return table;
}

}  // namespace torch_pjrt
