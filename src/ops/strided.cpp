#include "ops/strided.h"

#include <algorithm>
#include <numeric>

#include "ops/registry.h"

namespace torch_pjrt {

using lazy::StridedPlan;
using stablehlo::Builder;
using stablehlo::Value;
using stablehlo::Values;

namespace {

Dims concat_dims(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Zeros after a 1-D value's end, or fewer elements.
Value resize_last(Builder& b, Value x, int64_t length) {
  const int64_t last = x.rank() - 1;
  if (x.dim(last) == length) return x;
  Dims low(x.rank(), 0), high(x.rank(), 0);
  high[last] = length - x.dim(last);
  return high[last] < 0 ? b.slice_dim(x, last, 0, length) : b.pad(x, b.constant(0, x.dtype()), low, high);
}

// Reads or writes the rows of one plan; `chosen` are the sizes of the levels that outer stages have cut out.
class StageLowering {
 public:
  StageLowering(Builder& builder, const StridedPlan& plan, const Values& starts)
      : b_(builder), plan_(plan), starts_(starts) {}

  // The sliced container.
  Value read(Value x) {
    Dims chosen;
    for (const auto& stage : plan_.stages) {
      x = cut(split(x, stage, chosen), stage, chosen);
      for (const auto& level : stage.levels) chosen.push_back(level.size);
    }
    return x;
  }

  // `x` with the rows of stages [first, ...) replaced by `update`, whose elements are in the container's order.
  Value write(Value x, Value update, size_t first = 0, const Dims& chosen = {}) {
    const auto& stage = plan_.stages[first];
    const Dims before = x.dims();
    Value container = split(x, stage, chosen);
    Dims cut_dims = chosen;
    for (const auto& level : stage.levels) cut_dims.push_back(level.size);
    const bool is_last = first + 1 == plan_.stages.size();
    Value rows = update;
    if (!is_last) rows = write(cut(container, stage, chosen), update, first + 1, cut_dims);
    if (stage.block != 1) cut_dims.push_back(stage.block);
    rows = b_.reshape(rows, cut_dims);
    if (cut_dims != container.dims()) {
      rows = b_.dynamic_update_slice(container, rows, start_values(stage, chosen));
    }
    if (stage.padded != stage.length) {
      rows = resize_last(b_, b_.reshape(rows, concat_dims(chosen, {stage.padded})), stage.length);
    }
    return b_.reshape(rows, before);
  }

 private:
  // [chosen..., length] -> [chosen..., extents..., block]
  Value split(Value x, const StridedPlan::Stage& stage, const Dims& chosen) {
    if (stage.padded != stage.length) {
      x = resize_last(b_, b_.reshape(x, concat_dims(chosen, {stage.length})), stage.padded);
    }
    Dims dims = chosen;
    for (const auto& level : stage.levels) dims.push_back(level.extent);
    if (stage.block != 1) dims.push_back(stage.block);
    return b_.reshape(x, dims);
  }

  // Takes each level's rows.
  Value cut(Value container, const StridedPlan::Stage& stage, const Dims& chosen) {
    Dims sizes = chosen;
    for (const auto& level : stage.levels) sizes.push_back(level.size);
    if (stage.block != 1) sizes.push_back(stage.block);
    if (sizes == container.dims()) return container;
    const bool is_dynamic =
        std::any_of(stage.levels.begin(), stage.levels.end(), [](const auto& level) { return level.start_index >= 0; });
    if (!is_dynamic) return b_.slice(container, Dims(sizes.size(), 0), sizes);
    return b_.dynamic_slice(container, start_values(stage, chosen), sizes);
  }

  Values start_values(const StridedPlan::Stage& stage, const Dims& chosen) {
    const Value zero = b_.constant(0, DType::kS64);
    Values values(chosen.size(), zero);
    for (const auto& level : stage.levels) {
      values.push_back(level.start_index < 0 ? zero : starts_.at(static_cast<size_t>(level.start_index)));
    }
    if (stage.block != 1) values.push_back(zero);
    return values;
  }

  Builder& b_;
  const StridedPlan& plan_;
  const Values& starts_;
};

bool is_identity_permutation(const Dims& permutation) { return std::is_sorted(permutation.begin(), permutation.end()); }

// The sliced container as the view.
Value arrange(Builder& b, Value x, const StridedPlan& plan) {
  if (!is_identity_permutation(plan.permutation)) {
    x = b.transpose(b.reshape(x, plan.sorted_sizes), plan.permutation);
  }
  if (!plan.broadcasts) return b.reshape(x, plan.sizes);
  Dims kept_sizes;
  for (const int64_t dim : plan.kept) kept_sizes.push_back(plan.sizes[dim]);
  return b.broadcast_in_dim(b.reshape(x, kept_sizes), plan.sizes, plan.kept);
}

// The inverse; where the view repeats an element, its first value counts.
Value disarrange(Builder& b, Value update, const StridedPlan& plan) {
  if (plan.broadcasts) {
    Dims limits(plan.sizes.size(), 1);
    for (const int64_t dim : plan.kept) limits[dim] = plan.sizes[dim];
    update = b.slice(update, Dims(limits.size(), 0), limits);
  }
  if (is_identity_permutation(plan.permutation)) return update;
  return b.transpose(b.reshape(update, permuted(plan.sizes, plan.kept)), inverse_permutation(plan.permutation));
}

// Flat element of each of the view's elements, with a last dimension of size 1.
Value flat_indices(Builder& b, const StridedPlan& plan, Value offset) {
  const TensorType type{DType::kS64, plan.sizes};
  Value indices = b.broadcast_to(offset, plan.sizes);
  for (size_t i = 0; i < plan.sizes.size(); ++i) {
    if (plan.sizes[i] == 1 || plan.strides[i] == 0) continue;
    const Value position = b.iota(type, static_cast<int64_t>(i));
    indices = b.add(indices, b.multiply(position, b.splat(plan.strides[i], type)));
  }
  return b.reshape(indices, concat_dims(plan.sizes, {1}));
}

Value flatten(Builder& b, Value x) { return b.reshape(x, {x.numel()}); }

Value gather_read(Builder& b, Value base, const StridedPlan& plan, Value offset) {
  const Value flat = resize_last(b, flatten(b, base), base.numel() + plan.shortfall);
  stablehlo::GatherDims dims;
  dims.collapsed_slice_dims = {0};
  dims.start_index_map = {0};
  dims.index_vector_dim = static_cast<int64_t>(plan.sizes.size());
  return b.gather(flat, flat_indices(b, plan, offset), dims, {1});
}

Value gather_write(Builder& b, Value base, Value update, const StridedPlan& plan, Value offset) {
  stablehlo::ScatterDims dims;
  dims.inserted_window_dims = {0};
  dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = static_cast<int64_t>(plan.sizes.size());
  // An index past the end writes nothing.
  const Value flat = b.scatter({flatten(b, base)}, flat_indices(b, plan, offset), {update}, dims,
                               [](const Values& arguments) { return Values{arguments[1]}; })[0];
  return b.reshape(flat, base.dims());
}

}  // namespace

Value lower_strided_read(Builder& b, Value base, const StridedPlan& plan, const Values& starts) {
  TP_CHECK(base.dims() == plan.source && std::ssize(starts) == plan.num_starts, "plan does not fit the value");
  if (plan.kind == StridedPlan::Kind::kEmpty) return b.splat(0.0, base.type().with_dims(plan.sizes));
  if (plan.kind == StridedPlan::Kind::kGather) return gather_read(b, base, plan, starts[0]);
  if (plan.window != 0) base = b.dynamic_slice(flatten(b, base), starts, {plan.window});
  return arrange(b, StageLowering(b, plan, starts).read(base), plan);
}

Value lower_strided_write(Builder& b, Value base, Value update, const StridedPlan& plan, const Values& starts) {
  TP_CHECK(base.dims() == plan.source && std::ssize(starts) == plan.num_starts, "plan does not fit the value");
  if (plan.kind == StridedPlan::Kind::kEmpty) return base;
  if (plan.kind == StridedPlan::Kind::kGather) return gather_write(b, base, update, plan, starts[0]);
  StageLowering stages(b, plan, starts);
  update = disarrange(b, update, plan);
  if (plan.window == 0) return stages.write(base, update);
  const Value flat = flatten(b, base);
  const Value window = stages.write(b.dynamic_slice(flat, starts, {plan.window}), update);
  return b.reshape(b.dynamic_update_slice(flat, window, starts), base.dims());
}

namespace {

// complex [n] -> real and imaginary parts [2n]
Value interleave(Builder& b, Value x) {
  const Dims column = {x.numel(), 1};
  const Value pair = b.concatenate({b.reshape(b.real(x), column), b.reshape(b.imag(x), column)}, 1);
  return b.reshape(pair, {2 * x.numel()});
}

Value deinterleave(Builder& b, Value x) {
  const int64_t n = x.numel() / 2;
  const Value pair = b.reshape(resize_last(b, x, 2 * n), {n, 2});
  return b.complex(b.reshape(b.slice_dim(pair, 1, 0, 1), {n}), b.reshape(b.slice_dim(pair, 1, 1, 2), {n}));
}

}  // namespace

Value lower_bitcast(Builder& b, Value flat, DType dtype) {
  if (flat.dtype() == dtype) return flat;
  if (is_complex(flat.dtype())) return lower_bitcast(b, interleave(b, flat), dtype);
  if (is_complex(dtype)) return deinterleave(b, lower_bitcast(b, flat, real_dtype(dtype)));
  // A pred is a byte in memory, but one bit to StableHLO.
  if (flat.dtype() == DType::kPred) return lower_bitcast(b, b.convert(flat, DType::kU8), dtype);
  if (dtype == DType::kPred) return b.convert(lower_bitcast(b, flat, DType::kU8), DType::kPred);
  const auto from = static_cast<int64_t>(size_bytes(flat.dtype())), to = static_cast<int64_t>(size_bytes(dtype));
  if (from == to) return b.bitcast_convert(flat, dtype);
  if (from > to) return flatten(b, b.bitcast_convert(flat, dtype));
  const int64_t ratio = to / from, n = flat.numel() / ratio;
  return b.bitcast_convert(b.reshape(resize_last(b, flat, n * ratio), {n, ratio}), dtype);
}

namespace {

const StridedPlan& plan_of(LoweringContext& ctx) {
  return lazy::plan_variant(ctx.tensor("self").dims(), ctx.ints("sizes"), ctx.ints("strides"), ctx.integer("variant"));
}

Values start_scalars(LoweringContext& ctx) {
  Values values;
  for (size_t i = 0; i < ctx.size("starts"); ++i) values.push_back(ctx.operand("starts", i, DType::kS64));
  return values;
}

Values lower_read(LoweringContext& ctx) {
  return {lower_strided_read(ctx.b, ctx.tensor("self"), plan_of(ctx), start_scalars(ctx))};
}

Values lower_write(LoweringContext& ctx) {
  const Value base = ctx.tensor("self");
  const Value update = ctx.b.broadcast_to(ctx.operand("value", base.dtype()), ctx.ints("sizes"));
  return {lower_strided_write(ctx.b, base, update, plan_of(ctx), start_scalars(ctx))};
}

Values lower_bitcast_node(LoweringContext& ctx) {
  return {lower_bitcast(ctx.b, ctx.tensor("self"), *ctx.dtype("dtype"))};
}

Values lower_resize_flat(LoweringContext& ctx) {
  return {resize_last(ctx.b, ctx.tensor("self"), ctx.integer("numel"))};
}

}  // namespace

const OpTable& strided_ops() {
  static const OpTable table = {
      {.name = "xla::strided_read", .lower = lower_read},
      {.name = "xla::strided_write", .lower = lower_write},
      {.name = "xla::bitcast", .lower = lower_bitcast_node},
      {.name = "xla::resize_flat", .lower = lower_resize_flat},
  };
  return table;
}

}  // namespace torch_pjrt
