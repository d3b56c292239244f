// Distances between all pairs of rows: cdist of x1 [*, P, M], x2 [*, R, M] -> [*, P, R]; pdist of self [P, M] ->
// [P (P - 1) / 2], row i with the rows after it, one i after the other.
#include <cmath>

#include "ops/indexing.h"
#include "ops/reduction.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

// x1 - x2 for every pair, [*, P, R, M]; leading dimensions broadcast.
Expr pair_differences(LoweringContext& ctx) {
  const Value x1 = ctx.tensor("x1");
  const Value x2 = ctx.tensor("x2");
  return Expr(ctx.b, ctx.b.unsqueeze(x1, x1.rank() - 1)) - Expr(ctx.b, ctx.b.unsqueeze(x2, x2.rank() - 2));
}

Values lower_cdist(LoweringContext& ctx) {
  const Expr difference = pair_differences(ctx);
  const ReductionDims last(difference.dims(), Dims{difference.value().rank() - 1});
  return {vector_norm(difference, ctx.real("p"), last)};
}

// d |difference|_p / d difference, 0 where the distance is 0.
Expr norm_slope(const Expr& difference, const Expr& distance, double p) {
  const Expr sign = difference.unary("stablehlo.sign");
  if (p == 0.0) return difference.like(0.0);
  if (p == 1.0) return sign;
  if (std::isinf(p)) return select(abs(difference) == distance, sign, 0.0);
  const Expr ratio = abs(difference) / distance;
  const Expr slope = p == 2.0 ? difference / distance : sign * power(ratio, ratio.like(p - 1.0));
  return select((distance == 0.0) | (difference == 0.0), 0.0, slope);
}

Values lower_cdist_backward(LoweringContext& ctx) {
  const Expr difference = pair_differences(ctx);
  const int64_t rank = difference.value().rank();
  const Expr distance(ctx.b, ctx.b.unsqueeze(ctx.tensor("cdist"), rank - 1));
  const Expr grad(ctx.b, ctx.b.unsqueeze(ctx.tensor("grad"), rank - 1));
  const Expr slopes = grad * norm_slope(difference, distance, ctx.real("p"));
  return {ReductionDims(slopes.dims(), Dims{rank - 2}).reduce(Reduction::kAdd, slopes)};
}

// The pairs of pdist: rows [K] of the first and of the second member, and self[first] - self[second] [K, M].
struct Pairs {
  Value first, second;
  Expr difference;
};

Pairs pairs_of(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const int64_t rows = self.dim(0), pairs = rows * (rows - 1) / 2;
  std::vector<int64_t> starts;  // the first pair of each row
  for (int64_t i = 0, next = 0; i < rows; next += rows - 1 - i, ++i) starts.push_back(next);
  const Expr table(b, b.dense(starts, {index_dtype(pairs), {1, rows}}));
  const Expr number = positions(b, {pairs}, 0);
  const Expr none(b, b.splat(0, {index_dtype(2 * rows), {pairs}}));
  // Ends of rows without pairs are beyond all numbers.
  const Expr first =
      minimum(binary_search(table, std::nullopt, rows, none, number, true) - 1.0, static_cast<double>(rows - 2));
  const Expr start(b, take_rows(b, b.reshape(table, {rows}), 0, first));
  const Expr second = first + ((number - start).convert(first.dtype()) + 1.0);
  const Expr difference = Expr(b, take_rows(b, self, 0, first)) - Expr(b, take_rows(b, self, 0, second));
  return {first, second, difference};
}

Values lower_pdist(LoweringContext& ctx) {
  if (ctx.output().numel() == 0) return {ctx.b.splat(0.0, ctx.output())};
  const Pairs pairs = pairs_of(ctx);
  return {vector_norm(pairs.difference, ctx.real("p"), ReductionDims(pairs.difference.dims(), Dims{1}))};
}

Values lower_pdist_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  if (ctx.tensor("pdist").numel() == 0) return {b.splat(0.0, ctx.output())};
  const Pairs pairs = pairs_of(ctx);
  const Expr distance(b, b.unsqueeze(ctx.tensor("pdist"), 1)), grad(b, b.unsqueeze(ctx.tensor("grad"), 1));
  const Expr slopes = grad * norm_slope(pairs.difference, distance, ctx.real("p"));
  const auto add = combine_update(b, Reduction::kAdd);
  const Value sum = scatter_rows(b, b.splat(0.0, ctx.output()), 0, pairs.first, slopes, add);
  return {scatter_rows(b, sum, 0, pairs.second, -slopes, add)};
}

}  // namespace

const OpTable& distance_ops() {
  static const OpTable table = {
      {.name = "aten::_cdist_forward", .lower = lower_cdist, .static_args = {"p"}},
      {.name = "aten::_cdist_backward", .lower = lower_cdist_backward, .static_args = {"p"}},
      {.name = "aten::_pdist_forward", .lower = lower_pdist, .static_args = {"p"}},
      {.name = "aten::_pdist_backward", .lower = lower_pdist_backward, .static_args = {"p"}},
  };
  return table;
}

}  // namespace torch_pjrt
