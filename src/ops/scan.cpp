#include "ops/scan.h"

#include <cmath>
#include <limits>

#include "ops/cast.h"
#include "ops/elementwise.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Region;
using stablehlo::Value;
using stablehlo::Values;
using stablehlo::Window;

namespace {

// Elements that one window combines directly: each costs as many steps, and each level of blocks one more pass.
constexpr int64_t kBlock = 16;

Values scan_window(Builder& b, const Values& xs, const Values& identity, int64_t dim, const Region& combine) {
  Window window;
  window.dims.assign(xs[0].dims().size(), 1);
  window.padding.assign(xs[0].dims().size(), {0, 0});
  const int64_t size = xs[0].dim(dim);
  window.dims[static_cast<size_t>(dim)] = size;
  window.padding[static_cast<size_t>(dim)] = {size - 1, 0};
  return b.reduce_window(xs, identity, window, combine);
}

Values pad_dim(Builder& b, const Values& xs, const Values& identity, int64_t dim, int64_t low, int64_t high) {
  Dims lows(xs[0].dims().size(), 0);
  Dims highs(xs[0].dims().size(), 0);
  lows[static_cast<size_t>(dim)] = low;
  highs[static_cast<size_t>(dim)] = high;
  Values padded;
  for (size_t i = 0; i < xs.size(); ++i) padded.push_back(b.pad(xs[i], identity[i], lows, highs));
  return padded;
}

// Combines `xs`, split into blocks [..., blocks, kBlock, ...], with what the blocks before each one add up to.
Values add_preceding_blocks(Builder& b, const Values& xs, const Values& identity, int64_t dim, const Region& combine) {
  Values totals;
  for (const Value& x : xs) totals.push_back(b.squeeze(b.slice_dim(x, dim + 1, kBlock - 1, kBlock), dim + 1));
  const Values preceding = pad_dim(b, scan(b, totals, identity, dim, combine), identity, dim, 1, -1);
  Values operands;
  for (const Value& value : preceding) operands.push_back(b.broadcast_to(b.unsqueeze(value, dim + 1), xs[0].dims()));
  operands.insert(operands.end(), xs.begin(), xs.end());
  return combine(operands);
}

}  // namespace

Values scan(Builder& b, const Values& xs, const Values& identity, int64_t dim, const Region& combine) {
  const Dims dims = xs[0].dims();
  const int64_t size = xs[0].dim(dim);
  if (size <= 1 || xs[0].numel() == 0) return xs;
  if (size <= kBlock) return scan_window(b, xs, identity, dim, combine);
  const int64_t blocks = (size + kBlock - 1) / kBlock;
  Dims split = dims;
  split[static_cast<size_t>(dim)] = blocks;
  split.insert(split.begin() + dim + 1, kBlock);
  Dims whole = dims;
  whole[static_cast<size_t>(dim)] = blocks * kBlock;
  Values in_blocks;
  for (const Value& x : pad_dim(b, xs, identity, dim, 0, blocks * kBlock - size))
    in_blocks.push_back(b.reshape(x, split));
  in_blocks = scan_window(b, in_blocks, identity, dim + 1, combine);
  Values results;
  for (const Value& x : add_preceding_blocks(b, in_blocks, identity, dim, combine)) {
    results.push_back(b.slice_dim(b.reshape(x, whole), dim, 0, size));
  }
  return results;
}

Value cumulative_sum(Builder& b, Value x, int64_t dim) {
  return scan(b, {x}, {b.identity(Reduction::kAdd, x.dtype())}, dim,
              [&](const Values& v) { return Values{b.add(v[0], v[1])}; })[0];
}

namespace {

// The dimension scanned; a scalar is scanned as one element.
struct ScanInput {
  Value x;
  int64_t dim;
};

ScanInput read_input(LoweringContext& ctx, Value x) {
  if (x.rank() == 0) return {ctx.b.reshape(x, {1}), 0};
  const int64_t dim = ctx.integer("dim");
  return {x, dim < 0 ? dim + x.rank() : dim};
}

DType accumulated_dtype(const LoweringContext& ctx, DType input) {
  if (const auto dtype = ctx.dtype("dtype")) return *dtype;
  if (ctx.has_outputs()) return ctx.output().dtype;
  return is_floating(input) || is_complex(input) ? input : DType::kS64;
}

Values lower_cumulative(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const DType result = accumulated_dtype(ctx, self.dtype());
  const auto [x, dim] = read_input(ctx, cast(b, self, accurate(result)));
  const bool is_sum = ctx.name() == "aten::cumsum";
  const Values scanned =
      scan(b, {x}, {b.identity(is_sum ? Reduction::kAdd : Reduction::kMul, x.dtype())}, dim,
           [&](const Values& v) { return Values{is_sum ? b.add(v[0], v[1]) : b.multiply(v[0], v[1])}; });
  return {b.convert(b.reshape(scanned[0], self.dims()), result)};
}

// Running maximum or minimum with the index of its last occurrence. NaN wins over numbers, a later one over an earlier.
Values lower_cumulative_extremum(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const auto [x, dim] = read_input(ctx, self);
  const bool is_max = ctx.name().find("cummax") != std::string_view::npos;
  const Value positions = b.iota({DType::kS64, x.dims()}, dim);
  const Value worst = is_max ? b.lowest(x.dtype()) : b.highest(x.dtype());
  const Values scanned = scan(b, {x, positions}, {worst, b.constant(-1, DType::kS64)}, dim, [&](const Values& v) {
    const Expr left(b, v[0]), left_index(b, v[1]), right(b, v[2]), right_index(b, v[3]);
    Expr better = is_max ? left > right : left < right;
    Expr tied = left == right;
    if (is_floating(left.dtype())) {
      better = better | (is_nan(left) & ~is_nan(right));
      tied = tied | (is_nan(left) & is_nan(right));
    }
    const Expr takes_left = better | (tied & (left_index > right_index));
    return Values{select(takes_left, left, right), select(takes_left, left_index, right_index)};
  });
  return {b.reshape(scanned[0], self.dims()), b.reshape(scanned[1], self.dims())};
}

Values lower_logcumsumexp(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  if (!is_floating(self.dtype())) ctx.decline("dtype ", hlo_name(self.dtype()));
  const auto [x, dim] = read_input(ctx, b.convert(self, wide(self.dtype())));
  const Values scanned = scan(b, {x}, {b.lowest(x.dtype())}, dim, [&](const Values& v) {
    const Expr left(b, v[0]), right(b, v[1]);
    const Expr sum = maximum(left, right) + log1p(exp(-abs(left - right)));
    const Expr infinite = abs(left) == std::numeric_limits<double>::infinity();
    return Values{select((left == right) & infinite, left, sum)};
  });
  return {b.convert(b.reshape(scanned[0], self.dims()), self.dtype())};
}

}  // namespace

const OpTable& scan_ops() {
  static const OpTable table = {
      {"aten::cumsum", lower_cumulative},
      {"aten::cumprod", lower_cumulative},
      {"aten::cummax", lower_cumulative_extremum},
      {"aten::cummin", lower_cumulative_extremum},
      {.name = "aten::_cummax_helper", .lower = lower_cumulative_extremum, .unread = {"values", "indices"}},
      {.name = "aten::_cummin_helper", .lower = lower_cumulative_extremum, .unread = {"values", "indices"}},
      {"aten::logcumsumexp", lower_logcumsumexp},
      {"aten::_logcumsumexp", lower_logcumsumexp},
  };
  return table;
}

}  // namespace torch_pjrt
