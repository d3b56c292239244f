// Distances between all pairs of rows: x1 [*, P, M], x2 [*, R, M] -> [*, P, R].
#include <cmath>

#include "ops/reduction.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

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

}  // namespace

const OpTable& distance_ops() {
  static const OpTable table = {
      {.name = "aten::_cdist_forward", .lower = lower_cdist, .static_args = {"p"}},
      {.name = "aten::_cdist_backward", .lower = lower_cdist_backward, .static_args = {"p"}},
  };
  return table;
}

}  // namespace torch_pjrt
