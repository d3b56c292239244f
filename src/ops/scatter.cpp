// Writing by index: scatter, scatter_reduce, index_add, index_put and their relatives.
#include "ops/elementwise.h"
#include "ops/indexing.h"
#include "ops/registry.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Region;
using stablehlo::Value;
using stablehlo::Values;

namespace {

Value flatten(Builder& b, Value x) { return b.reshape(x, {x.numel()}); }

// An operator that combines updates into self by some kind of index.
using Writer = std::function<Value(Value x, Value update, const Region& combine)>;

struct ReduceKind {
  Reduction reduction;
  bool is_mean = false;
};

ReduceKind reduce_kind(LoweringContext& ctx, std::string_view reduce) {
  if (reduce == "sum" || reduce == "add") return {Reduction::kAdd};
  if (reduce == "prod" || reduce == "multiply") return {Reduction::kMul};
  if (reduce == "amax") return {Reduction::kMax};
  if (reduce == "amin") return {Reduction::kMin};
  if (reduce == "mean") return {Reduction::kAdd, true};
  ctx.decline("reduction ", reduce);
}

Value divide_counts(Builder& b, const Expr& sum, const Expr& counts) {
  const Expr divisor = maximum(counts, 1.0);
  if (!is_integral(sum.dtype())) return sum / divisor;
  // Rounded down, as ATen's mean of integers.
  const Expr quotient = sum / divisor;
  return select((sum < 0.0) & (quotient * divisor != sum), quotient - 1.0, quotient);
}

// scatter_reduce and index_reduce. Without `include_self`, elements that an update reaches start from the neutral
// element.
Value reduce_into(Builder& b, Value self, Value update, ReduceKind kind, bool include_self, const Writer& write) {
  const DType dtype = self.dtype();
  const Region combine = combine_update(b, kind.reduction);
  Value start = self;
  if (!include_self) {
    const Value touched = write(b.splat(false, {DType::kPred, self.dims()}),
                                b.splat(true, {DType::kPred, update.dims()}), replace_update());
    start = b.select(touched, b.broadcast_to(b.identity(kind.reduction, dtype), self.dims()), self);
  }
  const Value reduced = write(start, update, combine);
  if (!kind.is_mean) return reduced;
  const Value counts = write(b.splat(include_self ? 1 : 0, {dtype, self.dims()}), b.splat(1, {dtype, update.dims()}),
                             combine_update(b, Reduction::kAdd));
  return divide_counts(b, {b, reduced}, {b, counts});
}

// The writer of torch.scatter's family.
Writer along_writer(LoweringContext& ctx, Value self) {
  const int64_t dim = wrap_dim(ctx.integer("dim"), self.rank());
  Builder& b = ctx.b;
  Value index = ctx.tensor("index");
  if (index.rank() != self.rank()) index = b.reshape(index, Dims(self.dims().size(), index.numel()));
  const int64_t size = self.rank() == 0 ? 1 : self.dim(dim);
  check_range(b, index, 0, size, RangeError::of_dimension(ErrorCode::kInvalidArgument, dim, size));
  return [&b, dim, index](Value x, Value update, const Region& combine) {
    return scatter_along(b, x, dim, index, update, combine);
  };
}

// `src` cut to the index's sizes, or `value` broadcast to them.
Value scatter_update(LoweringContext& ctx, Value self) {
  Builder& b = ctx.b;
  Dims sizes = ctx.tensor("index").dims();
  if (std::ssize(sizes) != self.rank()) sizes = Dims(self.dims().size(), product(sizes));
  if (!ctx.has("src")) return b.broadcast_to(ctx.operand("value", self.dtype()), sizes);
  const Value src = ctx.operand("src", self.dtype());
  if (src.rank() != std::ssize(sizes)) return b.reshape(b.slice_dim(flatten(b, src), 0, 0, product(sizes)), sizes);
  return b.slice(src, Dims(sizes.size(), 0), sizes);
}

Values lower_scatter(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const Region combine =
      ctx.has("reduce") ? combine_update(ctx.b, reduce_kind(ctx, ctx.string("reduce")).reduction) : replace_update();
  return {along_writer(ctx, self)(self, scatter_update(ctx, self), combine)};
}

Values lower_scatter_add(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  return {along_writer(ctx, self)(self, scatter_update(ctx, self), combine_update(ctx.b, Reduction::kAdd))};
}

Values lower_scatter_reduce(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  return {reduce_into(ctx.b, self, scatter_update(ctx, self), reduce_kind(ctx, ctx.string("reduce")),
                      ctx.flag("include_self", true), along_writer(ctx, self))};
}

// Rows of `source` into rows of self, both as one-dimensional where self is a scalar.
struct RowWrite {
  Value self, source;
  Writer write;
};

// The words of index_add, index_copy and index_reduce differ, of index_add also those for a vector.
RangeError row_error(const LoweringContext& ctx, int64_t dim, int64_t size) {
  const bool is_add = ctx.name() == "aten::index_add";
  if (ctx.name() == "aten::index_reduce" || (is_add && ctx.tensor("self").rank() < 2)) return kOutOfSelf;
  if (is_add) return RangeError::of_dimension(ErrorCode::kInvalidArgument, dim, size);
  return RangeError::of_dimension(ErrorCode::kIndexError, dim, size, "index_copy_(): ");
}

RowWrite row_write(LoweringContext& ctx) {
  Builder& b = ctx.b;
  RowWrite row{.self = ctx.tensor("self"), .source = ctx.operand("source", ctx.tensor("self").dtype()), .write = {}};
  const Value index = flatten(b, ctx.tensor("index"));
  const int64_t dim = wrap_dim(ctx.integer("dim"), row.self.rank());
  if (row.self.rank() == 0) row.self = b.reshape(row.self, {1});
  Dims sizes = row.self.dims();
  // Of rows that are empty, index_add looks at no index.
  const bool is_checked = ctx.name() != "aten::index_add" || row.self.rank() == 1 || row.self.numel() > 0;
  if (is_checked) check_range(b, index, 0, sizes[dim], row_error(ctx, dim, sizes[dim]));
  sizes[dim] = index.numel();
  row.source = b.reshape(row.source, sizes);
  row.write = [&b, dim, index](Value x, Value update, const Region& combine) {
    return scatter_rows(b, x, dim, index, update, combine);
  };
  return row;
}

Values lower_index_add(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const RowWrite row = row_write(ctx);
  const Expr source(b, row.source);
  const Expr alpha(b, ctx.number("alpha", source.dtype(), 1.0));
  const Value result = row.write(row.self, multiply_any(source, alpha), combine_update(b, Reduction::kAdd));
  return {b.reshape(result, ctx.tensor("self").dims())};
}

Values lower_index_copy(LoweringContext& ctx) {
  const RowWrite row = row_write(ctx);
  return {ctx.b.reshape(row.write(row.self, row.source, replace_update()), ctx.tensor("self").dims())};
}

Values lower_index_reduce(LoweringContext& ctx) {
  const RowWrite row = row_write(ctx);
  const Value result = reduce_into(ctx.b, row.self, row.source, reduce_kind(ctx, ctx.string("reduce")),
                                   ctx.flag("include_self", true), row.write);
  return {ctx.b.reshape(result, ctx.tensor("self").dims())};
}

// As many elements of the mask are set as there are values.
void check_count(Builder& b, Value self, Value mask, int64_t first, Value values, int64_t count) {
  Dims before(self.dims().begin(), self.dims().begin() + first);
  Dims after(self.dims().begin() + first + mask.rank(), self.dims().end());
  const std::string head = to_list(before), tail = to_list(after);
  check_count_set(b, mask, count, count + 1,
                  {ErrorCode::kInvalidArgument,
                   concat("shape mismatch: value tensor of shape ", to_string(values.dims()),
                          " cannot be broadcast to indexing result of shape [", head, head.empty() ? "" : ", "),
                   concat(tail.empty() ? "" : ", ", tail, "]")});
}

// self[mask] = values, where `mask` covers dimensions [first, first + mask.rank()). A value for each set element is
// found by counting; one value for all of them is a select.
Value write_masked(Builder& b, Value self, Value mask, int64_t first, Value values, bool accumulate) {
  const int64_t last = first + mask.rank(), after = self.rank() - last;
  Dims mask_dims;
  for (int64_t i = first; i < last; ++i) mask_dims.push_back(i);
  const Value full_mask = b.broadcast_in_dim(mask, self.dims(), mask_dims);
  const int64_t counted = values.rank() - 1 - after;  // the values' dimension that runs over set elements
  Value update;
  if (counted < 0) {
    update = b.broadcast_to(values, self.dims());
  } else if (values.dim(counted) == 1) {
    // That dimension stands for all of the mask's.
    Dims dims(values.dims().begin(), values.dims().begin() + counted);
    dims.insert(dims.end(), mask.dims().size(), 1);
    dims.insert(dims.end(), values.dims().begin() + counted + 1, values.dims().end());
    update = b.broadcast_to(b.reshape(values, dims), self.dims());
  } else {
    check_count(b, self, mask, first, values, values.dim(counted));
    if (values.dim(counted) == 0) return self;
    const Value ranks = ranks_of_set(b, flatten(b, mask));
    const Value rows = take_rows(b, values, counted, b.reshape(ranks, mask.dims()));
    update = b.broadcast_to(rows, self.dims());
  }
  if (accumulate) update = add_any({b, self}, {b, update});
  return b.select(full_mask, update, self);
}

Values lower_index_put(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const Value values = ctx.operand("values", self.dtype());
  const bool accumulate = ctx.flag("accumulate");
  const auto indices = ctx.optional_tensors("indices");
  std::optional<Value> mask;
  int64_t num_indices = 0, first = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    ++num_indices;
    if (indices[i]->dtype() != DType::kPred && indices[i]->dtype() != DType::kU8) continue;
    mask = b.convert(*indices[i], DType::kPred);
    first = static_cast<int64_t>(i);
  }
  if (self.numel() == 0) return {self};
  if (mask && num_indices > 1) ctx.decline("a mask beside other indices");
  if (mask) return {write_masked(b, self, *mask, first, values, accumulate)};
  if (num_indices == 0) {
    const Expr update(b, b.broadcast_to(values, self.dims()));
    return {accumulate ? add_any({b, self}, update) : update};
  }
  const bool is_trusted = ctx.name() == "aten::_unsafe_index_put" || ctx.flag("unsafe");
  if (!is_trusted) check_indices(b, self.dims(), indices);
  const AdvancedIndex index(b, self.dims(), indices);
  // Leading dimensions of size 1 may exceed the result's.
  Dims value_dims = values.dims();
  while (value_dims.size() > index.result_dims().size()) value_dims.erase(value_dims.begin());
  const Value update = b.broadcast_to(b.reshape(values, value_dims), index.result_dims());
  return {index.write(self, update, accumulate ? combine_update(b, Reduction::kAdd) : replace_update())};
}

Values lower_put(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const Value index = flatten(b, ctx.tensor("index"));
  const Value source = flatten(b, ctx.operand("source", self.dtype()));
  if (self.numel() == 0) return {self};
  const Region combine = ctx.flag("accumulate") ? combine_update(b, Reduction::kAdd) : replace_update();
  check_flat_index(b, index, self.numel());
  const Value flat = scatter_rows(b, flatten(b, self), 0, wrapped_index({b, index}, self.numel()), source, combine);
  return {b.reshape(flat, self.dims())};
}

}  // namespace

const OpTable& scatter_ops() {
  static const OpTable table = {
      {.name = "aten::scatter", .lower = lower_scatter},
      {.name = "aten::scatter_add", .lower = lower_scatter_add},
      {.name = "aten::scatter_reduce", .lower = lower_scatter_reduce},
      {.name = "aten::index_add", .lower = lower_index_add},
      {.name = "aten::index_copy", .lower = lower_index_copy},
      {.name = "aten::index_reduce", .lower = lower_index_reduce},
      {.name = "aten::index_put", .lower = lower_index_put},
      {.name = "aten::_index_put_impl", .lower = lower_index_put},
      {.name = "aten::_unsafe_index_put", .lower = lower_index_put},
      {.name = "aten::put", .lower = lower_put},
  };
  return table;
}

}  // namespace torch_pjrt
