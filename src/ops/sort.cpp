// Sorting and order statistics. NaN counts as larger than every number, as in ATen.
#include "ops/sort.h"

#include <limits>
#include <numeric>

#include "ops/indexing.h"
#include "ops/registry.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

namespace {

// Whether `x` comes before `y`.
Expr precedes(const Expr& x, const Expr& y, bool descending) {
  const Expr ordered = descending ? x > y : x < y;
  if (!is_floating(x.dtype())) return ordered;
  return ordered | (descending ? is_nan(x) & ~is_nan(y) : ~is_nan(x) & is_nan(y));
}

// Elements of at most 32 bits fit beside their index into one integer, which sorts several times as fast as a pair
// does.
bool fits_beside_index(Value x, int64_t dim) {
  return size_bytes(x.dtype()) <= 4 && index_dtype(x.dim(dim)) == DType::kS32;
}

// s64 in [-2^31, 2^31), ordered as the elements are.
Expr order_key(const Expr& x) {
  if (x.dtype() == DType::kU32) return x.convert(DType::kS64) - 0x1p31;
  if (!is_floating(x.dtype())) return x.convert(DType::kS64);
  const Expr single = x.convert(DType::kF32);
  const Expr bits(x.builder(), x.builder().bitcast_convert(single, DType::kS32));
  const double largest = std::numeric_limits<int32_t>::max();
  // Negative numbers order backwards by their bits.
  const Expr ordered = select(bits < 0.0, bits ^ bits.like(largest), bits);
  return select(is_nan(single), largest, select(single == 0.0, 0.0, ordered)).convert(DType::kS64);
}

Sorted sort_packed(Builder& b, Value x, int64_t dim, bool descending) {
  Expr key = order_key({b, x});
  if (descending) key = ~key;
  const Expr index = positions(b, x.dims(), dim).convert(DType::kS64);
  const Value packed = key.binary("stablehlo.shift_left", key.like(32.0)) | index;
  const Expr sorted(b, b.sort({packed}, dim, false, [&](const Values& arguments) {
    return Values{b.compare(stablehlo::Comparison::kLt, arguments[0], arguments[1])};
  })[0]);
  const Value indices = (sorted & sorted.like(0xFFFFFFFF)).convert(DType::kS32);
  return {gather_along(b, x, dim, indices), indices};
}

Sorted sort_pairs(Builder& b, Value x, int64_t dim, bool descending) {
  const Values result = b.sort({x, positions(b, x.dims(), dim)}, dim, true, [&](const Values& arguments) {
    return Values{precedes({b, arguments[0]}, {b, arguments[1]}, descending)};
  });
  return {result[0], result[1]};
}

// Numbers that f32 holds exactly: for them XLA has a selection that does not sort.
bool is_exact_in_single(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kPred ||
         ((is_floating(dtype) || is_integral(dtype)) && size_bytes(dtype) <= 2);
}

// chlo.top_k puts positive NaN first and negative NaN last, and of equal elements the first one first.
Sorted select_top(Builder& b, Value x, int64_t dim, int64_t k, bool largest) {
  const int64_t last = x.rank() - 1;
  Dims order(x.dims().size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[dim], order[last]);
  const Expr single = Expr(b, b.transpose(x, order)).convert(DType::kF32);
  const uint32_t nan_bits = largest ? 0x7FC00000 : 0xFFC00000;
  const Expr nan(b, b.bitcast_convert(b.splat(int64_t{nan_bits}, {DType::kU32, single.dims()}), DType::kF32));
  const auto [values, indices] = b.top_k(select(is_nan(single), nan, largest ? single : -single), k);
  const Value indices_back = b.transpose(indices, order);
  return {gather_along(b, x, dim, indices_back), indices_back};
}

}  // namespace

Sorted sort_along(Builder& b, Value x, int64_t dim, bool descending) {
  if (x.dim(dim) <= 1) return {x, positions(b, x.dims(), dim)};
  return fits_beside_index(x, dim) ? sort_packed(b, x, dim, descending) : sort_pairs(b, x, dim, descending);
}

Sorted top_along(Builder& b, Value x, int64_t dim, int64_t k, bool largest) {
  const int64_t size = x.dim(dim);
  // The selection's time grows with k.
  const bool selects = is_exact_in_single(x.dtype()) && x.numel() > 0 && k > 0 && k <= size / 8;
  if (selects) return select_top(b, x, dim, k, largest);
  const Sorted sorted = sort_along(b, x, dim, largest);
  return {b.slice_dim(sorted.values, dim, 0, k), b.slice_dim(sorted.indices, dim, 0, k)};
}

namespace {

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
  const int64_t k = ctx.integer("k");
  const Sorted top = top_along(ctx.b, line.self, line.dim, k, ctx.flag("largest", true));
  if (line.is_scalar && k == 1) return as_results(ctx, line, top);
  return {top.values, ctx.b.convert(top.indices, DType::kS64)};
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

}  // namespace

const OpTable& sort_ops() {
  static const OpTable table = {
      {.name = "aten::sort", .lower = lower_sort},           {.name = "aten::topk", .lower = lower_topk},
      {.name = "aten::kthvalue", .lower = lower_kthvalue},   {.name = "aten::median", .lower = lower_median},
      {.name = "aten::nanmedian", .lower = lower_nanmedian}, {.name = "aten::mode", .lower = lower_mode},
  };
  return table;
}

}  // namespace torch_pjrt
