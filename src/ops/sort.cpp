// Sorting and order statistics. NaN counts as larger than every number, as in ATen.
#include "ops/indexing.h"
#include "ops/registry.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

namespace {

struct Sorted {
  Value values, indices;
};

// Whether `x` comes before `y`.
Expr precedes(const Expr& x, const Expr& y, bool descending) {
  const Expr ordered = descending ? x > y : x < y;
  if (!is_floating(x.dtype())) return ordered;
  return ordered | (descending ? is_nan(x) & ~is_nan(y) : ~is_nan(x) & is_nan(y));
}

// Stable. `x` has at least one dimension; the indices are index_dtype.
Sorted sort_along(Builder& b, Value x, int64_t dim, bool descending) {
  const Value indices = positions(b, x.dims(), dim);
  if (x.dim(dim) <= 1) return {x, indices};
  const Values result = b.sort({x, indices}, dim, true, [&](const Values& arguments) {
    return Values{precedes({b, arguments[0]}, {b, arguments[1]}, descending)};
  });
  return {result[0], result[1]};
}

// An operator along `dim`; a scalar counts as one dimension of one element.
struct Line {
  Value self;
  int64_t dim, size;
  bool is_scalar;

  explicit Line(LoweringContext& ctx) : self(ctx.tensor("self")), is_scalar(self.rank() == 0) {
    if (is_scalar) self = ctx.b.reshape(self, {1});
    dim = wrap_dim(ctx.integer("dim", -1), self.rank());
    size = self.dim(dim);
  }
};

Values as_results(LoweringContext& ctx, const Line& line, const Sorted& sorted) {
  const auto shaped = [&](Value x) { return line.is_scalar ? ctx.b.reshape(x, {}) : x; };
  return {shaped(sorted.values), ctx.b.convert(shaped(sorted.indices), DType::kS64)};
}

// One element for each line: values and indices [..., 1, ...] lose `dim` unless it is kept.
Values as_reduced(LoweringContext& ctx, const Line& line, const Sorted& one) {
  if (ctx.flag("keepdim") || line.is_scalar) return as_results(ctx, line, one);
  return as_results(ctx, line, {ctx.b.squeeze(one.values, line.dim), ctx.b.squeeze(one.indices, line.dim)});
}

Values lower_sort(LoweringContext& ctx) {
  const Line line(ctx);
  return as_results(ctx, line, sort_along(ctx.b, line.self, line.dim, ctx.flag("descending")));
}

Values lower_topk(LoweringContext& ctx) {
  const Line line(ctx);
  const Sorted sorted = sort_along(ctx.b, line.self, line.dim, ctx.flag("largest", true));
  const int64_t k = ctx.integer("k");
  if (line.is_scalar && k == 1) return as_results(ctx, line, sorted);
  const auto first = [&](Value x) { return ctx.b.slice_dim(x, line.dim, 0, k); };
  return {first(sorted.values), ctx.b.convert(first(sorted.indices), DType::kS64)};
}

Values lower_kthvalue(LoweringContext& ctx) {
  const Line line(ctx);
  const Sorted sorted = sort_along(ctx.b, line.self, line.dim, false);
  const int64_t k = ctx.integer("k");
  const auto kth = [&](Value x) { return ctx.b.slice_dim(x, line.dim, k - 1, k); };
  return as_reduced(ctx, line, {kth(sorted.values), kth(sorted.indices)});
}

// The lower median. A NaN is the median of its line, unless NaN are ignored.
Sorted median_along(Builder& b, Value x, int64_t dim, bool ignore_nan) {
  const Sorted sorted = sort_along(b, x, dim, false);
  const int64_t size = x.dim(dim);
  if (!is_floating(x.dtype())) {
    const int64_t middle = (size - 1) / 2;
    return {b.slice_dim(sorted.values, dim, middle, middle + 1), b.slice_dim(sorted.indices, dim, middle, middle + 1)};
  }
  Dims one = x.dims();
  one[dim] = 1;
  const Value is_number = b.convert(b.compare(stablehlo::Comparison::kEq, x, x), index_dtype(size));
  const Expr count(b, b.reshape(b.reduce(Reduction::kAdd, is_number, {dim}), one));
  const Expr middle = maximum((count - 1.0) / 2.0, 0.0);
  // The first NaN follows the numbers.
  const Expr at = ignore_nan ? middle : select(count == static_cast<double>(size), middle, count);
  return {gather_along(b, sorted.values, dim, at), gather_along(b, sorted.indices, dim, at)};
}

Values lower_any_median(LoweringContext& ctx, bool ignore_nan) {
  Builder& b = ctx.b;
  if (ctx.has("dim")) {
    const Line line(ctx);
    return as_reduced(ctx, line, median_along(b, line.self, line.dim, ignore_nan));
  }
  const Value self = b.reshape(ctx.tensor("self"), {ctx.tensor("self").numel()});
  if (self.numel() == 0) {
    if (!is_floating(self.dtype())) ctx.decline("median of no integers");
    return {b.constant(std::numeric_limits<double>::quiet_NaN(), self.dtype())};
  }
  return {b.reshape(median_along(b, self, 0, ignore_nan).values, {})};
}

Values lower_median(LoweringContext& ctx) { return lower_any_median(ctx, false); }
Values lower_nanmedian(LoweringContext& ctx) { return lower_any_median(ctx, true); }

// Along sorted values the longest run of equal ones, the first such; its last element stands for it.
Values lower_mode(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Line line(ctx);
  const int64_t dim = line.dim, size = line.size;
  const Sorted sorted = sort_along(b, line.self, dim, false);
  const Expr at = positions(b, line.self.dims(), dim);
  Expr lengths = at.like(1.0);
  if (size > 1) {
    const Expr before(b, b.slice_dim(sorted.values, dim, 0, size - 1));
    const Expr after(b, b.slice_dim(sorted.values, dim, 1, size));
    const Value differs = before != after;
    Dims none(line.self.dims().size(), 0), one = none;
    one[dim] = 1;
    const Value edge = b.constant(true, DType::kPred);
    const Expr starts_run(b, b.pad(differs, edge, one, none));
    const Expr ends_run(b, b.pad(differs, edge, none, one));
    const Expr run_start(b, scan(b, Reduction::kMax, select(starts_run, at, 0.0), dim));
    lengths = select(ends_run, at - run_start + 1.0, 0.0);
  }
  Dims kept = line.self.dims();
  kept[dim] = 1;
  const Expr longest(b, b.reshape(b.reduce(Reduction::kMax, lengths, {dim}), kept));
  const Value candidates = select(lengths == longest, at, static_cast<double>(size));
  const Value first = b.reshape(b.reduce(Reduction::kMin, candidates, {dim}), kept);
  return as_reduced(ctx, line,
                    {gather_along(b, sorted.values, dim, first), gather_along(b, sorted.indices, dim, first)});
}

// The range [low, high] that the bins divide: the data's own where min equals max.
std::pair<Expr, Expr> histogram_range(LoweringContext& ctx, const Expr& x) {
  Builder& b = ctx.b;
  const double min = ctx.real("min", 0.0), max = ctx.real("max", 0.0);
  if (min != max || x.dims()[0] == 0) {
    const double widen = min == max ? 1.0 : 0.0;
    return {Expr(b, b.constant(min - widen, x.dtype())), Expr(b, b.constant(max + widen, x.dtype()))};
  }
  const Expr low(b, b.reduce(Reduction::kMin, x, {0})), high(b, b.reduce(Reduction::kMax, x, {0}));
  return {select(low == high, low - 1.0, low), select(low == high, high + 1.0, high)};
}

Values lower_histc(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const int64_t bins = ctx.integer("bins", 100);
  const Value self = ctx.tensor("self");
  const Expr x(b, b.reshape(self, {self.numel()}));
  const auto [low, high] = histogram_range(ctx, x);
  const Expr scaled = (x - low) * static_cast<double>(bins) / (high - low);
  const Expr bin = minimum(scaled.convert(DType::kS32), static_cast<double>(bins - 1));
  // Elements outside the range go past the end, where nothing is written.
  const Value target = select((x >= low) & (x <= high), bin, static_cast<double>(bins));
  return {
      scatter_rows(b, b.splat(0.0, {x.dtype(), {bins}}), 0, target, x.like(1.0), combine_update(b, Reduction::kAdd))};
}

}  // namespace

const OpTable& sort_ops() {
  static const OpTable table = {
      {.name = "aten::sort", .lower = lower_sort},
      {.name = "aten::topk", .lower = lower_topk},
      {.name = "aten::kthvalue", .lower = lower_kthvalue},
      {.name = "aten::median", .lower = lower_median},
      {.name = "aten::nanmedian", .lower = lower_nanmedian},
      {.name = "aten::mode", .lower = lower_mode},
      {.name = "aten::histc", .lower = lower_histc, .static_args = {"min", "max"}},
  };
  return table;
}

}  // namespace torch_pjrt
