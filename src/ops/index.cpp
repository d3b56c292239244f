// Reading by index and by mask: index_select, gather, advanced indexing, masked_fill, searchsorted.
#include <limits>

#include "ops/indexing.h"
#include "ops/registry.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

namespace {

Value flatten(Builder& b, Value x) { return b.reshape(x, {x.numel()}); }

bool is_mask(Value index) { return index.dtype() == DType::kPred || index.dtype() == DType::kU8; }

Values lower_index_select(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  if (ctx.tensor("index").rank() > 1 || !is_integral(ctx.tensor("index").dtype())) ctx.decline("index is no vector");
  const Value index = flatten(ctx.b, ctx.tensor("index"));
  // A scalar is indexed like its only row.
  const int64_t dim = wrap_dim(ctx.integer("dim"), self.rank());
  check_range(ctx.b, index, 0, self.rank() == 0 ? 1 : self.dim(dim), kOutOfSelf);
  if (self.rank() == 0) return {self};
  return {take_rows(ctx.b, self, dim, index)};
}

Values lower_gather(LoweringContext& ctx) {
  const Value self = ctx.tensor("self"), index = ctx.tensor("index");
  const int64_t dim = wrap_dim(ctx.integer("dim"), self.rank()), size = self.rank() == 0 ? 1 : self.dim(dim);
  check_range(ctx.b, index, 0, size, RangeError::of_dimension(ErrorCode::kInvalidArgument, dim, size));
  if (self.rank() == 0 || index.rank() == 0) {
    const Value row = take_rows(ctx.b, flatten(ctx.b, self), 0, flatten(ctx.b, index));
    return {ctx.b.reshape(row, index.dims())};
  }
  return {gather_along(ctx.b, self, dim, index)};
}

Values lower_index(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  const auto indices = ctx.optional_tensors("indices");
  bool is_plain = true;
  for (const auto& index : indices) {
    if (!index) continue;
    is_plain = false;
    if (is_mask(*index)) ctx.decline("the result's size depends on the mask's values");
  }
  if (is_plain) return {self};
  if (ctx.name() == "aten::index") check_indices(ctx.b, self.dims(), indices);
  return {AdvancedIndex(ctx.b, self.dims(), indices).read(self)};
}

Values lower_take(LoweringContext& ctx) {
  const Value self = flatten(ctx.b, ctx.tensor("self"));
  const Expr index(ctx.b, ctx.tensor("index"));
  check_flat_index(ctx.b, index, self.numel());
  return {take_rows(ctx.b, self, 0, wrapped_index(index, self.numel()))};
}

Values lower_masked_fill(LoweringContext& ctx) {
  const Expr self(ctx.b, ctx.tensor("self"));
  const Expr mask = Expr(ctx.b, ctx.tensor("mask")).convert(DType::kPred);
  if (ctx.is_tensor("value")) require_convertible(ctx.b, ctx.tensor("value"), self.dtype());
  return {select(mask, Expr(ctx.b, ctx.operand("value", self.dtype())), self)};
}

// The i-th set element of the mask takes the i-th element of the source.
Values lower_masked_scatter(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const auto [mask, self] = b.broadcast_pair(b.convert(ctx.tensor("mask"), DType::kPred), ctx.tensor("self"));
  const Value source = flatten(b, ctx.tensor("source"));
  check_count_set(b, mask, 0, source.numel() + 1,
                  {ErrorCode::kInvalidArgument, "Number of elements of source < number of ones in mask", std::nullopt});
  if (source.numel() == 0 || self.numel() == 0) return {self};
  const Expr ranks = ranks_of_set(b, flatten(b, mask));
  const Value taken = b.reshape(take_rows(b, source, 0, ranks), self.dims());
  return {b.select(mask, taken, self)};
}

// The masked elements of the gradient first, then zeros.
Values lower_masked_scatter_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value grad_output = ctx.tensor("grad_output");
  const Value mask = flatten(b, b.broadcast_to(b.convert(ctx.tensor("mask"), DType::kPred), grad_output.dims()));
  const Dims sizes = ctx.ints("sizes");
  const Value zeros = b.splat(0.0, {grad_output.dtype(), {product(sizes)}});
  const Expr ranks = ranks_of_set(b, mask);
  const Value targets = select({b, mask}, ranks, static_cast<double>(product(sizes)));
  return {b.reshape(scatter_rows(b, zeros, 0, targets, flatten(b, grad_output), replace_update()), sizes)};
}

Values lower_index_fill(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const Value value = ctx.operand("value", self.dtype());
  const Value index = flatten(b, ctx.tensor("index"));
  if (index.numel() == 0 || self.numel() == 0) return {self};
  const bool is_number = self.rank() == 0;
  const int64_t dim = is_number ? 0 : wrap_dim(ctx.integer("dim"), self.rank()), size = is_number ? 1 : self.dim(dim);
  check_range(b, index, -size, size, RangeError::of_dimension(ErrorCode::kIndexError, dim, size));
  if (is_number) return {b.reshape(value, {})};
  const Value rows = wrapped_index({b, index}, size);
  const Value hit = scatter_rows(b, b.splat(false, {DType::kPred, {size}}), 0, rows,
                                 b.splat(true, {DType::kPred, index.dims()}), replace_update());
  return {b.select(b.broadcast_in_dim(hit, self.dims(), {dim}), b.broadcast_to(value, self.dims()), self)};
}

Values lower_search(LoweringContext& ctx, std::string_view sequence_name) {
  Builder& b = ctx.b;
  const DType dtype = ctx.result_type({sequence_name, "self"});
  const Expr sequence(b, ctx.operand(sequence_name, dtype));
  Expr values(b, ctx.operand("self", dtype));
  const std::string side = ctx.string("side", ctx.flag("right") ? "right" : "left");
  if (side != "left" && side != "right") ctx.decline("side ", side);
  const bool right = side == "right";
  const Dims result_dims = values.dims();
  const int64_t n = sequence.dims().empty() ? 1 : sequence.dims().back();
  const DType result = ctx.flag("out_int32") ? DType::kS32 : DType::kS64;
  if (product(result_dims) == 0 || n == 0) return {b.splat(0, {result, result_dims})};

  Expr row_starts(b, b.splat(0, {index_dtype(sequence.value().numel() + n), result_dims}));
  if (sequence.dims().size() > 1) {
    const int64_t columns = result_dims.back(), rows = values.value().numel() / columns;
    const Value row = positions(b, {rows, columns}, 0).convert(row_starts.dtype());
    row_starts = Expr(b, b.reshape(row, result_dims)) * static_cast<double>(n);
  }
  std::optional<Expr> sorter;
  if (ctx.has("sorter")) sorter = Expr(b, ctx.tensor("sorter"));
  return {binary_search(sequence, sorter, n, row_starts, values, right).convert(result)};
}

Values lower_searchsorted(LoweringContext& ctx) { return lower_search(ctx, "sorted_sequence"); }
Values lower_bucketize(LoweringContext& ctx) { return lower_search(ctx, "boundaries"); }

Values lower_isin(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const std::string_view elements_name = ctx.has("elements") ? "elements" : "element";
  const std::string_view tests_name = ctx.has("test_elements") ? "test_elements" : "test_element";
  const DType dtype = ctx.result_type({elements_name, tests_name});
  const Value elements = ctx.operand(elements_name, dtype);
  const Value tests = flatten(b, ctx.operand(tests_name, dtype));
  Dims pairs = elements.dims();
  pairs.push_back(tests.numel());
  Dims element_dims(elements.dims().size());
  for (size_t i = 0; i < element_dims.size(); ++i) element_dims[i] = static_cast<int64_t>(i);
  const Value equal = b.compare(Comparison::kEq, b.broadcast_in_dim(elements, pairs, element_dims),
                                b.broadcast_in_dim(tests, pairs, {elements.rank()}));
  const Value found = b.reduce(Reduction::kOr, equal, {elements.rank()});
  return {ctx.flag("invert") ? b.logical_not(found) : found};
}

// Element j of the result is the row whose repeats cover position j.
Values lower_repeat_interleave(LoweringContext& ctx) {
  Builder& b = ctx.b;
  if (!ctx.has("output_size")) ctx.decline("the result's size depends on the repeats' values");
  const Value repeats = ctx.tensor("repeats");
  const int64_t size = ctx.integer("output_size"), n = repeats.numel();
  if (size == 0 || n == 0) return {b.splat(0, {repeats.dtype(), {size}})};
  const Expr ends(b, scan(b, Reduction::kAdd, repeats, 0));
  const Expr at(b, b.iota({repeats.dtype(), {size}}, 0));
  const Expr zero(b, b.splat(0, {index_dtype(2 * n), {size}}));
  return {binary_search(ends, std::nullopt, n, zero, at, true).convert(repeats.dtype())};
}

// The first `size` coordinates of non-zero elements, padded by `fill_value`.
Values lower_nonzero_static(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const int64_t size = ctx.integer("size"), fill = ctx.integer("fill_value", -1);
  const TensorType column{DType::kS64, {size, 1}};
  Values columns;
  if (size == 0 || self.rank() == 0 || self.numel() == 0) return {b.splat(fill, {DType::kS64, {size, self.rank()}})};
  const Value mask = flatten(b, b.convert(self, DType::kPred));
  const Value targets = select({b, mask}, ranks_of_set(b, mask), static_cast<double>(size));
  for (int64_t dim = 0; dim < self.rank(); ++dim) {
    const Value coordinates = flatten(b, b.iota({DType::kS64, self.dims()}, dim));
    const Value kept = scatter_rows(b, b.splat(fill, {DType::kS64, {size}}), 0, targets, coordinates, replace_update());
    columns.push_back(b.reshape(kept, column.dims));
  }
  return {b.concatenate(columns, 1)};
}

// int64 [*] -> [*, num_classes]
Values lower_one_hot(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value self = ctx.tensor("self");
  const int64_t classes = ctx.integer("num_classes");
  if (classes < 1 || self.dtype() != DType::kS64) ctx.decline("the CPU looks at the values or refuses them");
  check_range(b, self, 0, std::numeric_limits<int64_t>::max(),
              {ErrorCode::kInvalidArgument, "Class values must be non-negative.", std::nullopt});
  check_range(b, self, std::numeric_limits<int64_t>::min(), classes,
              {ErrorCode::kInvalidArgument, "Class values must be smaller than num_classes.", std::nullopt});
  Dims dims = self.dims();
  dims.push_back(classes);
  const Expr number(b, b.iota({DType::kS64, dims}, self.rank()));
  return {(number == Expr(b, b.unsqueeze(self, self.rank()))).convert(DType::kS64)};
}

}  // namespace

const OpTable& index_ops() {
  static const OpTable table = {
      {.name = "aten::index_select", .lower = lower_index_select},
      {.name = "aten::gather", .lower = lower_gather},
      {.name = "aten::index", .lower = lower_index},
      {.name = "aten::_unsafe_index", .lower = lower_index},
      {.name = "aten::take", .lower = lower_take},
      {.name = "aten::masked_fill", .lower = lower_masked_fill},
      {.name = "aten::masked_scatter", .lower = lower_masked_scatter},
      {.name = "aten::masked_scatter_backward", .lower = lower_masked_scatter_backward},
      {.name = "aten::index_fill", .lower = lower_index_fill},
      // select_backward and slice_backward are left to PyTorch: their indices are then run-time inputs.
      {.name = "aten::searchsorted", .lower = lower_searchsorted},
      {.name = "aten::bucketize", .lower = lower_bucketize},
      {.name = "aten::isin", .lower = lower_isin},
      {.name = "aten::repeat_interleave", .lower = lower_repeat_interleave},
      {.name = "aten::one_hot", .lower = lower_one_hot, .override_implicit = true},
      {.name = "aten::nonzero_static", .lower = lower_nonzero_static},
  };
  return table;
}

}  // namespace torch_pjrt
