// Fractional max pooling: windows of one size at places that a random sample of each plane chooses.
#include "ops/indexing.h"
#include "ops/max_pool.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Value;
using stablehlo::Values;

struct Line {
  int64_t input, output, kernel;
};

// [P, output, kernel] s32: the positions that each window covers, by the samples [P] of the planes. The arithmetic is
// ATen's, in the dtype of the samples.
Expr covered(const Expr& samples, const Line& line) {
  Builder& b = samples.builder();
  const int64_t planes = samples.value().numel();
  const Dims dims{planes, line.output, line.kernel};
  const Expr last(b, b.splat(line.input - line.kernel, {DType::kS32, {planes, line.output}}));
  Expr starts = last;
  if (line.output > 1) {
    const Expr number(b, b.iota({DType::kS32, {planes, line.output}}, 1));
    const Expr sample(b, b.reshape(samples, {planes, 1}));
    const Expr alpha =
        sample.like(static_cast<double>(line.input - line.kernel)) / sample.like(static_cast<double>(line.output - 1));
    const Expr moved = ((number.convert(sample.dtype()) + sample) * alpha).convert(DType::kS32);
    const Expr regular = moved - (sample * alpha).convert(DType::kS32);
    starts = select(number == static_cast<double>(line.output - 1), last, regular);
  }
  return Expr(b, b.broadcast_in_dim(starts, dims, {0, 1})) + Expr(b, b.iota({DType::kS32, dims}, 2));
}

// The sizes of each spatial dimension, and which sample is its own: the 2-d operator has them from the last dimension.
std::vector<Line> lines_of(LoweringContext& ctx, const Value& self) {
  const Dims kernel = ctx.ints("kernel_size"), output = ctx.ints("output_size");
  std::vector<Line> lines;
  for (size_t i = 0; i < output.size(); ++i) {
    lines.push_back({self.dims()[self.dims().size() - output.size() + i], output[i], kernel[i]});
  }
  return lines;
}

// (maxima, s64 indices in the plane)
Values lower_fractional_max_pool(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self"), samples = ctx.tensor("random_samples");
  const std::vector<Line> lines = lines_of(ctx, self);
  const auto spatial = static_cast<int64_t>(lines.size());
  const Dims leading(self.dims().begin(), self.dims().end() - spatial);
  const int64_t planes = product(leading);
  if (self.numel() == 0) ctx.decline("no elements");
  for (const Line& line : lines) {
    if (line.kernel < 1 || line.kernel > line.input) ctx.decline("no window fits");
  }
  Dims outputs{planes}, windows{planes};
  for (const Line& line : lines) outputs.push_back(line.output);
  for (const Line& line : lines) windows.push_back(line.kernel);
  Dims table = outputs;
  table.insert(table.end(), windows.begin() + 1, windows.end());
  // Flat position in its plane of every element of every window.
  std::optional<Expr> position;
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t own = spatial == 2 ? 1 - i : i;
    const Expr sample(b, b.reshape(b.slice_dim(b.reshape(samples, {planes, spatial}), 1, own, own + 1), {planes}));
    const Expr part(
        b, b.broadcast_in_dim(covered(sample, lines[static_cast<size_t>(i)]), table, {0, 1 + i, 1 + spatial + i}));
    position = position ? *position * static_cast<double>(lines[static_cast<size_t>(i)].input) + part : part;
  }
  const int64_t plane = self.numel() / planes, window = product(windows) / planes, places = product(outputs) / planes;
  const Value index = b.reshape(*position, {planes, places * window});
  const Dims grouped{planes, places, window};
  const Value values = b.reshape(gather_along(b, b.reshape(self, {planes, plane}), 1, index), grouped);
  const Values best = b.reduce({values, b.reshape(index, grouped)}, {b.lowest(self.dtype()), b.highest(DType::kS32)},
                               {2}, [&b](const Values& arguments) { return take_maximum(b, arguments); });
  Dims result = leading;
  result.insert(result.end(), outputs.begin() + 1, outputs.end());
  return {b.reshape(best[0], result), b.convert(b.reshape(best[1], result), DType::kS64)};
}

Values lower_fractional_max_pool_backward(LoweringContext& ctx) {
  return {max_pool_backward(ctx.b, std::nullopt, ctx.tensor("grad_output"), ctx.tensor("indices"), ctx.tensor("self"),
                            ctx.ints("output_size").size())};
}

}  // namespace

const OpTable& fractional_pool_ops() {
  static const OpTable table = {
      {.name = "aten::fractional_max_pool2d", .lower = lower_fractional_max_pool},
      {.name = "aten::fractional_max_pool3d", .lower = lower_fractional_max_pool},
      {.name = "aten::fractional_max_pool2d_backward", .lower = lower_fractional_max_pool_backward},
      {.name = "aten::fractional_max_pool3d_backward", .lower = lower_fractional_max_pool_backward},
  };
  return table;
}

}  // namespace torch_pjrt
