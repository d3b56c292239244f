// Counts of elements in bins of equal width.
#include "ops/indexing.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

struct Range {
  Expr low, high;
};

// min and max, or those of the elements where both are equal; never empty.
Range range_of(LoweringContext& ctx, const Expr& x) {
  Builder& b = ctx.b;
  const Expr low(b, ctx.number("min", x.dtype(), 0.0)), high(b, ctx.number("max", x.dtype(), 0.0));
  Range range{low, high};
  if (x.value().numel() > 0) {
    const Expr is_given = low != high;
    range.low = select(is_given, low, {b, b.reduce(Reduction::kMin, x, {0})});
    range.high = select(is_given, high, {b, b.reduce(Reduction::kMax, x, {0})});
  }
  const Expr is_empty = range.low == range.high;
  return {select(is_empty, range.low - 1.0, range.low), select(is_empty, range.high + 1.0, range.high)};
}

// Integers are counted too, as on other accelerators; the CPU has no kernel for them.
Values lower_histc(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  if (is_complex(self.dtype()) || self.dtype() == DType::kPred) ctx.decline("no order");
  const auto bins = static_cast<double>(ctx.integer("bins", 100));
  const DType compute = is_floating(self.dtype()) ? self.dtype() : DType::kS64;
  const Expr x(b, b.reshape(b.convert(self, compute), {self.numel()}));
  const Range range = range_of(ctx, x);
  const Expr is_inside = (x >= range.low) & (x <= range.high);
  const Expr position = (x - range.low) * bins / (range.high - range.low);
  const Expr bin = minimum(position.convert(DType::kS32), bins - 1.0);
  // Elements outside the range go past the end, where nothing is written.
  const Value target = select(is_inside, bin, bins);
  const Value counts = b.splat(0, {DType::kS32, {ctx.integer("bins", 100)}});
  const Value ones = b.splat(1, {DType::kS32, x.dims()});
  return {b.convert(scatter_rows(b, counts, 0, target, ones, combine_update(b, Reduction::kAdd)), self.dtype())};
}

}  // namespace

const OpTable& histogram_ops() {
  // Not among the families whose dtypes are the CPU's.
  static const OpTable table = {{.name = "aten::histc", .lower = lower_histc}};
  return table;
}

}  // namespace torch_pjrt
