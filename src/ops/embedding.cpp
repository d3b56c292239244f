// Embedding lookup, its dense gradient and its in-place renormalisation: weight [V, D], indices [*] -> [*, D].
#include <cmath>

#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::GatherDims;
using stablehlo::Reduction;
using stablehlo::Region;
using stablehlo::ScatterDims;
using stablehlo::Value;
using stablehlo::Values;

// weight[indices]
Value take_rows(Builder& b, Value weight, Value indices) {
  GatherDims dims;
  for (int64_t i = 1; i < weight.rank(); ++i) dims.offset_dims.push_back(indices.rank() + i - 1);
  dims.collapsed_slice_dims = dims.start_index_map = {0};
  dims.index_vector_dim = indices.rank();
  Dims slice_sizes = weight.dims();
  slice_sizes[0] = 1;
  return b.gather(weight, indices, dims, slice_sizes);
}

// `target` [V, *] with `updates` [N, *] combined into the rows that `indices` [N] name.
Value scatter_rows(Builder& b, Value target, Value indices, Value updates, const Region& combine) {
  ScatterDims dims;
  for (int64_t i = 1; i < target.rank(); ++i) dims.update_window_dims.push_back(i);
  dims.inserted_window_dims = dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = 1;
  return b.scatter({target}, indices, {updates}, dims, combine)[0];
}

Value add_rows(Builder& b, Value target, Value indices, Value updates) {
  return scatter_rows(b, target, indices, updates,
                      [&b](const Values& pair) { return Values{b.add(pair[0], pair[1])}; });
}

Values lower_embedding(LoweringContext& ctx) { return {take_rows(ctx.b, ctx.tensor("weight"), ctx.tensor("indices"))}; }

// How often each of `indices` [N] occurs among them, [N] in `dtype`.
Value occurrences(Builder& b, Value indices, int64_t num_weights, DType dtype) {
  const Value zeros = b.splat(0, {dtype, {num_weights}});
  return take_rows(b, add_rows(b, zeros, indices, b.splat(1, indices.type().with_dtype(dtype))), indices);
}

Values lower_embedding_dense_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const DType dtype = ctx.tensor("grad_output").dtype();
  const int64_t num_weights = ctx.integer("num_weights");
  const int64_t width = ctx.tensor("grad_output").dims().back();
  const Value argument = ctx.tensor("indices");
  const Value indices = b.reshape(argument, {argument.numel()});
  Value rows = b.reshape(ctx.operand("grad_output", accumulate_dtype(dtype)), {indices.numel(), width});
  if (ctx.flag("scale_grad_by_freq")) {
    const Value counts = occurrences(b, indices, num_weights, rows.dtype());
    rows = b.divide(rows, b.broadcast_in_dim(counts, rows.dims(), {0}));
  }
  const int64_t padding_idx = ctx.integer("padding_idx");
  if (padding_idx >= 0) {
    const Value is_padding = b.compare(Comparison::kEq, indices, b.splat(padding_idx, indices.type()));
    rows = b.select(b.broadcast_in_dim(is_padding, rows.dims(), {0}), b.splat(0, rows.type()), rows);
  }
  const Value zeros = b.splat(0, {rows.dtype(), {num_weights, width}});
  return {b.convert(add_rows(b, zeros, indices, rows), dtype)};
}

// Scales down the named rows whose norm exceeds max_norm. A row named twice is written twice with the same values.
Values lower_embedding_renorm(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value weight = ctx.tensor("self");
  const Value argument = ctx.tensor("indices");
  const Value indices = b.reshape(argument, {argument.numel()});
  const Value rows = b.convert(take_rows(b, weight, indices), accumulate_dtype(weight.dtype()));
  const double p = ctx.real("norm_type");
  const Value magnitude = b.abs(rows);
  Value norm;
  if (std::isinf(p)) {
    norm = b.reduce(Reduction::kMax, magnitude, {1});
  } else {
    const Value powers = b.power(magnitude, b.splat_like(p, rows));
    norm = b.reduce(Reduction::kAdd, p == 1.0 ? magnitude : powers, {1});
    if (p != 1.0) norm = p == 2.0 ? b.sqrt(norm) : b.power(norm, b.splat_like(1.0 / p, norm));
  }
  const Value limit = b.broadcast_to(ctx.operand("max_norm", rows.dtype()), norm.dims());
  const Value shrink = b.divide(limit, b.add(norm, b.splat_like(1e-7, norm)));
  const Value factor = b.select(b.compare(Comparison::kGt, norm, limit), shrink, b.splat_like(1.0, norm));
  const Value scaled = b.convert(b.multiply(rows, b.broadcast_in_dim(factor, rows.dims(), {0})), weight.dtype());
  return {scatter_rows(b, weight, indices, scaled, [](const Values& pair) { return Values{pair[1]}; })};
}

}  // namespace

const OpTable& embedding_ops() {
  static const OpTable table = {
      {.name = "aten::embedding", .lower = lower_embedding},
      {.name = "aten::embedding_dense_backward", .lower = lower_embedding_dense_backward},
      {.name = "aten::embedding_renorm", .lower = lower_embedding_renorm, .static_args = {"norm_type"}},
  };
  return table;
}

}  // namespace torch_pjrt
