// Embedding lookup: weight [V, D], indices [*] -> [*, D]; its dense gradient, its in-place renormalisation, and bags of
// embeddings: indices [N] cut into B bags -> [B, D].
#include <limits>

#include "ops/indexing.h"
#include "ops/promotion.h"
#include "ops/reduction.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

Expr take(const Expr& x, const Expr& index) { return {x.builder(), take_rows(x.builder(), x, 0, index)}; }

// Zeros [size, *] with each of `rows` [N, *] added to the row that `index` [N] names.
Expr add_to_rows(const Expr& rows, const Expr& index, int64_t size) {
  Builder& b = rows.builder();
  Dims dims = rows.dims();
  dims[0] = size;
  const Value zeros = b.splat(0, {rows.dtype(), dims});
  return {b, scatter_rows(b, zeros, 0, index, rows, combine_update(b, Reduction::kAdd))};
}

// [N] -> [N, 1], which broadcasts against rows.
Expr column(const Expr& x) { return {x.builder(), x.builder().unsqueeze(x, 1)}; }

// Row gradients [N, D] summed into the weight's gradient [num_weights, D], by the arguments both lookups share.
Value sum_row_gradients(LoweringContext& ctx, Expr rows, const Expr& indices) {
  const int64_t num_weights = ctx.integer("num_weights");
  if (ctx.flag("scale_grad_by_freq")) {
    const Expr ones = indices.convert(rows.dtype()).like(1.0);
    rows = rows / column(take(add_to_rows(ones, indices, num_weights), indices));
  }
  const int64_t padding_idx = ctx.integer("padding_idx");
  if (padding_idx >= 0) rows = select(column(indices == static_cast<double>(padding_idx)), 0.0, rows);
  return add_to_rows(rows, indices, num_weights);
}

Values lower_embedding(LoweringContext& ctx) {
  const Value weight = ctx.tensor("weight"), indices = ctx.tensor("indices");
  check_range(ctx.b, indices, 0, weight.dim(0), kOutOfSelf);
  return {take_rows(ctx.b, weight, 0, indices)};
}

Values lower_embedding_dense_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value grad = ctx.tensor("grad_output");
  const Value indices = ctx.tensor("indices");
  const Value rows = b.reshape(b.convert(grad, accumulate_dtype(grad.dtype())), {indices.numel(), grad.dims().back()});
  const Value sum = sum_row_gradients(ctx, {b, rows}, {b, b.reshape(indices, {indices.numel()})});
  return {b.convert(sum, grad.dtype())};
}

// Scales down the named rows whose norm exceeds max_norm. A row named twice is written twice with the same values.
Values lower_embedding_renorm(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value weight = ctx.tensor("self");
  const Value argument = ctx.tensor("indices");
  const Value indices = b.reshape(argument, {argument.numel()});
  const Expr rows = Expr(b, take_rows(b, weight, 0, indices)).convert(accumulate_dtype(weight.dtype()));
  const ReductionDims dims(rows.dims(), Dims{1});
  const Expr norm = dims.keep(vector_norm(rows, ctx.real("norm_type"), dims));
  const Expr limit(b, ctx.operand("max_norm", rows.dtype()));
  const Expr scaled = select(norm > limit, rows * (limit / (norm + 1e-7)), rows);
  return {scatter_rows(b, weight, 0, indices, scaled.convert(weight.dtype()), replace_update())};
}

// --- bags
// -------------------------------------------------------------------------------------------------------------

enum class BagMode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

BagMode bag_mode(const LoweringContext& ctx) { return static_cast<BagMode>(ctx.integer("mode")); }

// For each of N indices the number of its bag: how many bags begin at or before it, less one.
Expr bag_numbers(Builder& b, const Expr& offsets, int64_t count) {
  const Value marks = add_to_rows(offsets.like(1.0), offsets, count);
  return Expr(b, scan(b, Reduction::kAdd, marks, 0)) - 1.0;
}

// (maxima [B, D], the indices they come from); zeros for an empty bag. Of equal elements the first.
std::pair<Expr, Expr> max_of_bags(Builder& b, const Expr& rows, const Expr& indices, const Expr& bags,
                                  const Expr& is_counted, int64_t count) {
  const Dims dims{count, rows.value().dim(1)};
  const Expr lowest(b, b.broadcast_to(b.lowest(rows.dtype()), dims));
  const Expr candidates = select(column(is_counted), rows, Expr(b, b.lowest(rows.dtype())));
  const Expr maxima(b, scatter_rows(b, lowest, 0, bags, candidates, combine_update(b, Reduction::kMax)));

  const int64_t none = indices.value().numel();
  const Expr position(b, b.iota({DType::kS64, rows.dims()}, 0));
  const Expr is_maximum = (rows == take(maxima, bags)) & column(is_counted);
  const Expr chosen = select(is_maximum, position, static_cast<double>(none));
  const Expr no_position(b, b.splat(none, {DType::kS64, dims}));
  const Expr first(b, scatter_rows(b, no_position, 0, bags, chosen, combine_update(b, Reduction::kMin)));
  const Expr is_empty = first == static_cast<double>(none);
  return {select(is_empty, 0.0, maxima), select(is_empty, 0.0, take(indices, first))};
}

// Sizes of bags as the output says: PyTorch's meta kernel counts the last offset as a bag.
Value padded_sizes(LoweringContext& ctx, const Expr& sizes) {
  const int64_t count = sizes.value().numel();
  const int64_t wanted = ctx.has_outputs() ? ctx.output(2).numel() : count;
  return ctx.b.pad(sizes, ctx.b.constant(0, sizes.dtype()), {0}, {wanted - count});
}

// PyTorch's fbgemm kernels have other words for an index, which tell how many threads shared the bags.
void check_bags(Builder& b, Value weight, Value indices, Value offsets) {
  const int64_t count = indices.numel(), last = offsets.numel() - 1;
  if (last >= 0) {
    check_range(b, b.slice_dim(offsets, 0, 0, 1), 0, 1,
                {ErrorCode::kInvalidArgument,
                 "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                 "However, got ",
                 ""});
    check_range(b, b.slice_dim(offsets, 0, last, last + 1), std::numeric_limits<int64_t>::min(), count + 1,
                {ErrorCode::kInvalidArgument,
                 concat("offsets[-1] can not be greater than input's length ", count, " but got offsets[-1] of "), ""});
  }
  check_range(b, indices, 0, weight.dim(0),
              {ErrorCode::kInvalidArgument,
               "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ", ""});
}

// (output, bag of each index, size of each bag, index of each maximum).
Values lower_embedding_bag(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value weight = ctx.tensor("weight");
  const Value starts = ctx.tensor("offsets");
  const Value given = ctx.tensor("indices");
  const Expr indices(b, given.dtype() == DType::kPred ? b.convert(given, starts.dtype()) : given);
  check_bags(b, weight, indices, starts);
  const int64_t count = starts.numel() - (ctx.flag("include_last_offset") ? 1 : 0);
  const Expr offsets(b, b.slice_dim(starts, 0, 0, count));
  const Expr bags = bag_numbers(b, offsets, indices.value().numel());
  const Expr is_counted = indices != static_cast<double>(ctx.integer("padding_idx", -1));
  const Expr sizes = add_to_rows(is_counted.convert(indices.dtype()), bags, count);
  Expr rows = Expr(b, take_rows(b, weight, 0, indices)).convert(accumulate_dtype(weight.dtype()));

  if (bag_mode(ctx) == BagMode::kMax) {
    const auto [maxima, chosen] = max_of_bags(b, rows, indices, bags, is_counted, count);
    return {maxima.convert(weight.dtype()), bags, padded_sizes(ctx, sizes), chosen.convert(indices.dtype())};
  }
  if (ctx.has("per_sample_weights")) rows = rows * column({b, ctx.operand("per_sample_weights", rows.dtype())});
  Expr output = add_to_rows(select(column(is_counted), rows, 0.0), bags, count);
  if (bag_mode(ctx) == BagMode::kMean) output = output / column(maximum(sizes.convert(rows.dtype()), 1.0));
  return {output.convert(weight.dtype()), bags, padded_sizes(ctx, sizes), b.splat(0, {indices.dtype(), {0}})};
}

Values lower_embedding_bag_backward(LoweringContext& ctx) {
  if (ctx.flag("sparse")) ctx.decline("sparse gradients");
  Builder& b = ctx.b;
  const DType dtype = ctx.tensor("grad").dtype();
  const Expr grad(b, ctx.operand("grad", accumulate_dtype(dtype)));
  const Expr indices(b, ctx.tensor("indices"));
  const Expr sizes(b, b.slice_dim(ctx.tensor("bag_size"), 0, 0, grad.value().dim(0)));
  if (bag_mode(ctx) == BagMode::kMax) {
    const Expr counted = select(column(sizes == 0.0), 0.0, grad);
    const Value zeros = b.splat(0, {grad.dtype(), {ctx.integer("num_weights"), grad.value().dim(1)}});
    const Value sum =
        scatter_along(b, zeros, 0, ctx.tensor("maximum_indices"), counted, combine_update(b, Reduction::kAdd));
    return {b.convert(sum, dtype)};
  }
  const Expr shared = bag_mode(ctx) == BagMode::kMean ? grad / column(maximum(sizes.convert(grad.dtype()), 1.0)) : grad;
  Expr rows = take(shared, {b, ctx.tensor("offset2bag")});
  if (ctx.has("per_sample_weights")) rows = rows * column({b, ctx.operand("per_sample_weights", rows.dtype())});
  return {b.convert(sum_row_gradients(ctx, rows, indices), dtype)};
}

Values lower_embedding_bag_per_sample_weights_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value weight = ctx.tensor("weight");
  const DType dtype = accumulate_dtype(weight.dtype());
  const Expr indices(b, ctx.tensor("indices"));
  const Expr grad = take({b, ctx.operand("grad", dtype)}, {b, ctx.tensor("offset2bag")});
  const Expr rows = Expr(b, take_rows(b, weight, 0, indices)).convert(dtype);
  const Expr product = ReductionDims(rows.dims(), Dims{1}).reduce(Reduction::kAdd, rows * grad);
  const Expr is_counted = indices != static_cast<double>(ctx.integer("padding_idx", -1));
  return {select(is_counted, product, 0.0).convert(weight.dtype())};
}

}  // namespace

const OpTable& embedding_ops() {
  static const OpTable table = {
      {.name = "aten::embedding", .lower = lower_embedding},
      {.name = "aten::embedding_dense_backward", .lower = lower_embedding_dense_backward},
      {.name = "aten::embedding_renorm", .lower = lower_embedding_renorm, .static_args = {"norm_type"}},
      {.name = "aten::_embedding_bag", .lower = lower_embedding_bag},
      {.name = "aten::_embedding_bag_forward_only", .lower = lower_embedding_bag},
      {.name = "aten::_embedding_bag_backward", .lower = lower_embedding_bag_backward},
      {.name = "aten::_embedding_bag_per_sample_weights_backward",
       .lower = lower_embedding_bag_per_sample_weights_backward},
  };
  return table;
}

}  // namespace torch_pjrt
