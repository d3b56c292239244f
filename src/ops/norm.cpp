// Batch, layer, group and weight normalisation with their backward, and renorm. Statistics are kept in float32 for the
// half types; an output in the caller's dtype is rounded once.
#include "ops/host_call.h"
#include "ops/host_kernel.h"
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

// All dimensions for which `is_reduced`.
template <typename Predicate>
ReductionDims dims_where(const Dims& dims, const Predicate& is_reduced) {
  Dims reduced;
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
    if (is_reduced(i)) reduced.push_back(i);
  }
  return ReductionDims(dims, reduced);
}

// Statistics keep their dimensions as size 1, so that they broadcast against the input.
Expr sum(const Expr& x, const ReductionDims& dims) { return dims.keep(dims.reduce(Reduction::kAdd, x)); }

Expr mean(const Expr& x, const ReductionDims& dims) { return sum(x, dims) / static_cast<double>(dims.count()); }

struct Normalized {
  Expr mean, centered, variance;  // x - mean; the variance is biased

  // Two passes: the mean first, because E[x^2] - E[x]^2 loses all digits where the mean is large.
  Normalized(const Expr& x, const ReductionDims& dims)
      : mean(torch_pjrt::mean(x, dims)), centered(x - mean), variance(torch_pjrt::mean(centered * centered, dims)) {}
};

Expr inverse_deviation(LoweringContext& ctx, const Expr& variance) { return rsqrt(variance + ctx.real("eps")); }

// Gradient of x_hat = (x - mean) * inverse with respect to x.
Expr normalize_backward(const Expr& grad, const Expr& x_hat, const Expr& inverse, const ReductionDims& dims) {
  return inverse * (grad - mean(grad, dims) - x_hat * mean(grad * x_hat, dims));
}

// A parameter or a saved statistic, reshaped so that it broadcasts against the input.
Expr shaped(LoweringContext& ctx, std::string_view name, DType dtype, const Dims& dims) {
  return {ctx.b, ctx.b.reshape(ctx.operand(name, dtype), dims)};
}

Expr affine(LoweringContext& ctx, Expr x, const Dims& parameter_dims) {
  if (ctx.has("weight")) x = x * shaped(ctx, "weight", x.dtype(), parameter_dims);
  if (ctx.has("bias")) x = x + shaped(ctx, "bias", x.dtype(), parameter_dims);
  return x;
}

Expr times_weight(LoweringContext& ctx, const Expr& x, const Dims& parameter_dims) {
  return ctx.has("weight") ? x * shaped(ctx, "weight", x.dtype(), parameter_dims) : x;
}

// The argument `name` in the dtype sums are kept in.
Expr wide(LoweringContext& ctx, std::string_view name) {
  return {ctx.b, ctx.operand(name, accumulate_dtype(ctx.tensor(name).dtype()))};
}

DType parameter_dtype(LoweringContext& ctx) { return ctx.tensor(ctx.has("weight") ? "weight" : "input").dtype(); }

Value flat(const Expr& x, DType dtype) { return x.builder().reshape(x.convert(dtype), {x.value().numel()}); }

// --- batch norm: input [N, C, *]
// --------------------------------------------------------------------------------------

struct Channels {
  ReductionDims dims;
  Dims shape;  // [1, C, 1, ...]

  explicit Channels(const Expr& x)
      : dims(dims_where(x.dims(), [](int64_t i) { return i != 1; })), shape(x.dims().size(), 1) {
    shape[1] = x.value().dim(1);
  }
};

// momentum * observed + (1 - momentum) * running. No value when there is nothing to update.
Value update_running(LoweringContext& ctx, std::string_view name, const Expr& observed) {
  if (!ctx.has(name)) return Value{};
  const Expr momentum(ctx.b, ctx.operand("momentum", observed.dtype()));
  const Expr running = shaped(ctx, name, observed.dtype(), observed.dims());
  return flat(momentum * observed + (1.0 - momentum) * running, ctx.tensor(name).dtype());
}

// ATen's kernels add the rows of a value whose features lie last in memory one by one: 100,000 of them lose two digits.
// Seen as [1, chains * C, rows / chains, 1], the same memory gives as many sums of interleaved rows for each channel.
struct Chains {
  int64_t count = 1, channels, rows;

  Chains(Builder& b, Value x) : channels(x.dim(1)), rows(x.numel() / x.dim(1)) {
    constexpr int64_t kMost = 64, kMostSums = 4096;  // which stay in the cache
    if (!has_features_last(b, x)) return;
    count = std::clamp<int64_t>(kMostSums / channels, 1, kMost);
    while (rows % count != 0) --count;
  }

  TensorType sums(DType dtype) const { return {dtype, {count * channels}}; }
  Value split(Builder& b, Value x) const {
    if (count == 1) return x;
    const Value in_rows = b.reshape(b.transpose(x, features_last(x.rank())), {1, rows / count, 1, count * channels});
    return b.transpose(in_rows, {0, 3, 1, 2});
  }
  // A value for each channel, for each chain.
  Value repeat(Builder& b, Value x) const {
    return b.reshape(b.broadcast_to(b.reshape(x, {1, channels}), {count, channels}), {count * channels});
  }
  // [1, C, 1, ...]
  Expr total(Builder& b, Value sums, const Dims& shape) const {
    const Value of_chains = b.reshape(sums, {count, channels});
    return {b, b.reshape(b.reduce(Reduction::kAdd, of_chains, {0}), shape)};
  }
};

// Mean and biased variance of each channel, by ATen's kernel.
std::pair<Expr, Expr> host_statistics(Builder& b, const Expr& x, const Channels& channels) {
  const Chains chains(b, x);
  const TensorType type = chains.sums(x.dtype());
  HostCall call(b, "aten::batch_norm_update_stats");
  const Values values = call.tensor(chains.split(b, x)).none().none().attribute(0.0).result(type).result(type).emit();
  const auto count = static_cast<double>(chains.count);
  const Expr mean = chains.total(b, values[0], channels.shape) / count;
  const Value center = chains.repeat(b, b.reshape(mean, {chains.channels}));
  const Expr offset = Expr(b, values[0]) - Expr(b, center);
  const Expr variance = chains.total(b, Expr(b, values[1]) + offset * offset, channels.shape) / count;
  return {mean, variance};
}

// (output, mean, inverse deviation, running mean, running variance); the last two without value where unchanged.
Values batch_norm(LoweringContext& ctx, bool training) {
  const Expr x = wide(ctx, "input");
  const Channels channels(x);
  const auto finish = [&](const Expr& centered, const Expr& center, const Expr& inverse) {
    const Expr output = affine(ctx, centered * inverse, channels.shape);
    return Values{output.convert(ctx.tensor("input").dtype()), flat(center, x.dtype()), flat(inverse, x.dtype())};
  };
  if (!training) {
    const Expr center = shaped(ctx, "running_mean", x.dtype(), channels.shape);
    const Expr variance = shaped(ctx, "running_var", x.dtype(), channels.shape);
    Values values = finish(x - center, center, inverse_deviation(ctx, variance));
    values.resize(5);
    return values;
  }
  const auto count = static_cast<double>(channels.dims.count());
  const auto update = [&](Values values, const Expr& mean, const Expr& variance) {
    values.push_back(update_running(ctx, "running_mean", mean));
    values.push_back(update_running(ctx, "running_var", variance * (count / (count - 1.0))));
    return values;
  };
  if (prefers_host_batch_norm(ctx.tensor("input").type())) {
    const auto [mean, variance] = host_statistics(ctx.b, x, channels);
    return update(finish(x - mean, mean, inverse_deviation(ctx, variance)), mean, variance);
  }
  const Normalized statistics(x, channels.dims);
  return update(finish(statistics.centered, statistics.mean, inverse_deviation(ctx, statistics.variance)),
                statistics.mean, statistics.variance);
}

// Outside training CPU's kernel saves empty statistics, and PyTorch's meta kernels disagree on it: follow the output.
Values batch_norm_of_schema(LoweringContext& ctx, bool training) {
  Values values = batch_norm(ctx, training);
  for (size_t i = 1; i <= 2; ++i) {
    const bool is_empty = ctx.has_outputs() ? ctx.output(i).numel() == 0 : !training;
    if (is_empty) values[i] = ctx.b.splat(0.0, {values[i].dtype(), {0}});
  }
  return values;
}

Values lower_native_batch_norm(LoweringContext& ctx) {
  Values values = batch_norm_of_schema(ctx, ctx.flag("training"));
  if (ctx.overload() == "no_stats") values.resize(3);
  return values;
}

Values lower_batch_norm_no_training(LoweringContext& ctx) {
  Values values = batch_norm_of_schema(ctx, false);
  values.resize(3);
  return values;
}

Values lower_batch_norm_with_update(LoweringContext& ctx) {
  Values values = batch_norm_of_schema(ctx, true);
  const Value reserve = ctx.b.splat(0, {DType::kU8, {0}});  // cuDNN's; empty everywhere else
  values.insert(values.begin() + 3, reserve);
  return values;
}

// The gradients in training, by ATen's kernel.
Values host_batch_norm_backward(LoweringContext& ctx, std::string_view saved_deviation) {
  const Value input = ctx.tensor("input");
  const TensorType type{input.dtype(), {input.dim(1)}};
  const std::vector<bool> mask = ctx.bools("output_mask");
  HostCall call(ctx.b, "aten::native_batch_norm_backward");
  call.tensor(ctx.tensor("grad_out")).tensor(input);
  if (ctx.has("weight")) {
    call.tensor(ctx.tensor("weight"));
  } else {
    call.none();
  }
  call.none().none().tensor(ctx.tensor("save_mean")).tensor(ctx.tensor(saved_deviation));
  call.attribute(true).attribute(ctx.real("eps")).attribute(mask);
  for (size_t i = 0; i < mask.size(); ++i) {
    if (!mask[i]) {
      call.undefined_result();
    } else {
      call.result(i == 0 ? input.type() : type);
    }
  }
  return call.emit();
}

// Gradients of weight and bias, [1, C, 1, ...], by ATen's kernel on chains of rows.
std::pair<Expr, Expr> host_sums(LoweringContext& ctx, std::string_view saved_deviation, const Dims& shape) {
  Builder& b = ctx.b;
  const Value input = ctx.tensor("input");
  const Chains chains(b, input);
  HostCall call(b, "aten::native_batch_norm_backward");
  call.tensor(chains.split(b, ctx.tensor("grad_out"))).tensor(chains.split(b, input)).none().none().none();
  call.tensor(chains.repeat(b, ctx.tensor("save_mean"))).tensor(chains.repeat(b, ctx.tensor(saved_deviation)));
  call.attribute(true).attribute(ctx.real("eps")).attribute(std::vector<bool>{false, true, true});
  const TensorType type = chains.sums(input.dtype());
  const Values sums = call.undefined_result().result(type).result(type).emit();
  return {chains.total(b, sums[1], shape), chains.total(b, sums[2], shape)};
}

Values batch_norm_backward(LoweringContext& ctx, bool training, std::string_view saved_deviation) {
  const std::vector<bool> mask = ctx.bools("output_mask");
  const bool is_host = training && prefers_host_batch_norm(ctx.tensor("input").type());
  if (is_host && !has_features_last(ctx.b, ctx.tensor("input"))) return host_batch_norm_backward(ctx, saved_deviation);
  const Expr x = wide(ctx, "input");
  const DType dtype = x.dtype();
  const Channels channels(x);
  const Expr grad(ctx.b, ctx.operand("grad_out", dtype));
  const Expr center = shaped(ctx, training ? "save_mean" : "running_mean", dtype, channels.shape);
  const Expr inverse = training ? shaped(ctx, saved_deviation, dtype, channels.shape)
                                : inverse_deviation(ctx, shaped(ctx, "running_var", dtype, channels.shape));
  const Expr x_hat = (x - center) * inverse;
  const auto [grad_weight, grad_bias] = is_host ? host_sums(ctx, saved_deviation, channels.shape)
                                                : std::pair(sum(grad * x_hat, channels.dims), sum(grad, channels.dims));
  const auto count = static_cast<double>(channels.dims.count());
  const Expr through = training ? grad - grad_bias / count - x_hat * (grad_weight / count) : grad;
  const Expr grad_input = through * times_weight(ctx, inverse, channels.shape);
  return {mask[0] ? grad_input.convert(ctx.tensor("input").dtype()) : Value{},
          mask[1] ? flat(grad_weight, parameter_dtype(ctx)) : Value{},
          mask[2] ? flat(grad_bias, parameter_dtype(ctx)) : Value{}};
}

Values lower_native_batch_norm_backward(LoweringContext& ctx) {
  return batch_norm_backward(ctx, ctx.flag("train"), "save_invstd");
}

// save_var holds the inverse deviation here too.
Values lower_batch_norm_backward(LoweringContext& ctx) {
  return batch_norm_backward(ctx, ctx.flag("update"), "save_var");
}

// --- layer norm: input [*, normalized_shape]
// --------------------------------------------------------------------------

struct Rows {
  ReductionDims dims, outer;
  Dims shape;  // of a parameter: normalized_shape

  Rows(LoweringContext& ctx, const Expr& x)
      : dims(split(ctx, x, true)), outer(split(ctx, x, false)), shape(ctx.ints("normalized_shape")) {}

 private:
  static ReductionDims split(LoweringContext& ctx, const Expr& x, bool inner) {
    const auto first = static_cast<int64_t>(x.dims().size() - ctx.size("normalized_shape"));
    return dims_where(x.dims(), [=](int64_t i) { return (i >= first) == inner; });
  }
};

// ATen's kernel takes one dtype.
bool prefers_host_layer_norm(LoweringContext& ctx) {
  const TensorType& input = ctx.tensor("input").type();
  for (const std::string_view name : {"weight", "bias"}) {
    if (ctx.has(name) && ctx.tensor(name).dtype() != input.dtype) return false;
  }
  return torch_pjrt::prefers_host_layer_norm(input);
}

// ATen's kernels on [rows, normalized elements], whose rows threads can share.
struct HostRows {
  int64_t normalized, count;
  TensorType input, statistics;

  explicit HostRows(LoweringContext& ctx)
      : normalized(TensorType{DType::kF32, ctx.ints("normalized_shape")}.numel()),
        count(ctx.tensor("input").numel() / normalized),
        input{ctx.tensor("input").dtype(), {count, normalized}},
        statistics{input.dtype, {count, 1}} {}

  HostCall& add(HostCall& call, LoweringContext& ctx, std::string_view name, const Dims& dims) const {
    return ctx.has(name) ? call.tensor(ctx.b.reshape(ctx.tensor(name), dims)) : call.none();
  }
};

Values host_layer_norm(LoweringContext& ctx) {
  const HostRows rows(ctx);
  HostCall call(ctx.b, "aten::native_layer_norm");
  rows.add(call, ctx, "input", rows.input.dims).integers({rows.normalized});
  rows.add(call, ctx, "weight", {rows.normalized});
  rows.add(call, ctx, "bias", {rows.normalized}).attribute(ctx.real("eps"));
  const Values values = call.result(rows.input).result(rows.statistics).result(rows.statistics).emit();
  const Dims& dims = ctx.tensor("input").dims();
  Dims outer = dims;
  std::fill(outer.end() - static_cast<std::ptrdiff_t>(ctx.size("normalized_shape")), outer.end(), 1);
  return {ctx.b.reshape(values[0], dims), ctx.b.reshape(values[1], outer), ctx.b.reshape(values[2], outer)};
}

Values host_layer_norm_backward(LoweringContext& ctx) {
  const HostRows rows(ctx);
  const std::vector<bool> mask = ctx.bools("output_mask");
  HostCall call(ctx.b, "aten::native_layer_norm_backward");
  rows.add(call, ctx, "grad_out", rows.input.dims);
  rows.add(call, ctx, "input", rows.input.dims).integers({rows.normalized});
  rows.add(call, ctx, "mean", rows.statistics.dims);
  rows.add(call, ctx, "rstd", rows.statistics.dims);
  rows.add(call, ctx, "weight", {rows.normalized});
  rows.add(call, ctx, "bias", {rows.normalized}).attribute(mask);
  const TensorType parameter{rows.input.dtype, {rows.normalized}};
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) {
      call.result(i == 0 ? rows.input : parameter);
    } else {
      call.undefined_result();
    }
  }
  Values values = call.emit();
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i])
      values[i] = ctx.b.reshape(values[i], i == 0 ? ctx.tensor("input").dims() : ctx.ints("normalized_shape"));
  }
  return values;
}

Values lower_native_layer_norm(LoweringContext& ctx) {
  if (prefers_host_layer_norm(ctx)) return host_layer_norm(ctx);
  const Expr x = wide(ctx, "input");
  const Rows rows(ctx, x);
  const Normalized statistics(x, rows.dims);
  const Expr inverse = inverse_deviation(ctx, statistics.variance);
  const Expr output = affine(ctx, statistics.centered * inverse, rows.shape);
  return {output.convert(ctx.tensor("input").dtype()), statistics.mean, inverse};
}

Values lower_native_layer_norm_backward(LoweringContext& ctx) {
  if (prefers_host_layer_norm(ctx)) return host_layer_norm_backward(ctx);
  const std::vector<bool> mask = ctx.bools("output_mask");
  const Expr x = wide(ctx, "input");
  const Rows rows(ctx, x);
  const Expr grad(ctx.b, ctx.operand("grad_out", x.dtype()));
  const Expr inverse(ctx.b, ctx.operand("rstd", x.dtype()));
  const Expr x_hat = (x - Expr(ctx.b, ctx.operand("mean", x.dtype()))) * inverse;
  Values result(3);
  if (mask[0]) {
    const Expr grad_input = normalize_backward(times_weight(ctx, grad, rows.shape), x_hat, inverse, rows.dims);
    result[0] = grad_input.convert(ctx.tensor("input").dtype());
  }
  if (mask[1]) result[1] = rows.outer.reduce(Reduction::kAdd, grad * x_hat).convert(parameter_dtype(ctx));
  if (mask[2]) result[2] = rows.outer.reduce(Reduction::kAdd, grad).convert(parameter_dtype(ctx));
  return result;
}

// --- group norm: input [N, C, *], viewed as [N, group, C / group, HxW]
// ------------------------------------------------

struct Groups {
  Dims view;
  ReductionDims dims, per_parameter;
  Dims statistics, parameter;  // shapes that broadcast against the view

  explicit Groups(LoweringContext& ctx)
      : view{ctx.integer("N"), ctx.integer("group"), ctx.integer("C") / ctx.integer("group"), ctx.integer("HxW")},
        dims(view, Dims{2, 3}),
        per_parameter(view, Dims{0, 3}),
        statistics{view[0], view[1], 1, 1},
        parameter{1, view[1], view[2], 1} {}

  Expr look(const Expr& x) const { return {x.builder(), x.builder().reshape(x, view)}; }
};

Values lower_native_group_norm(LoweringContext& ctx) {
  const Value input = ctx.tensor("input");
  const Groups groups(ctx);
  const Expr x = groups.look(wide(ctx, "input"));
  const Normalized statistics(x, groups.dims);
  const Expr inverse = inverse_deviation(ctx, statistics.variance);
  const Expr output = affine(ctx, statistics.centered * inverse, groups.parameter);
  const auto saved = [&](const Expr& statistic) {
    return ctx.b.reshape(statistic.convert(parameter_dtype(ctx)), {groups.view[0], groups.view[1]});
  };
  return {ctx.b.reshape(output.convert(input.dtype()), input.dims()), saved(statistics.mean), saved(inverse)};
}

Values lower_native_group_norm_backward(LoweringContext& ctx) {
  const std::vector<bool> mask = ctx.bools("output_mask");
  const Value input = ctx.tensor("input");
  const Groups groups(ctx);
  const Expr x = groups.look(wide(ctx, "input"));
  const Expr grad = groups.look({ctx.b, ctx.operand("grad_out", x.dtype())});
  const Expr inverse = shaped(ctx, "rstd", x.dtype(), groups.statistics);
  const Expr x_hat = (x - shaped(ctx, "mean", x.dtype(), groups.statistics)) * inverse;
  Values result(3);
  if (mask[0]) {
    const Expr scaled = times_weight(ctx, grad, groups.parameter);
    const Expr grad_input = normalize_backward(scaled, x_hat, inverse, groups.dims);
    result[0] = ctx.b.reshape(grad_input.convert(input.dtype()), input.dims());
  }
  if (mask[1]) result[1] = flat(sum(grad * x_hat, groups.per_parameter), parameter_dtype(ctx));
  if (mask[2]) result[2] = flat(sum(grad, groups.per_parameter), parameter_dtype(ctx));
  return result;
}

// --- weight norm and renorm
// -------------------------------------------------------------------------------------------

ReductionDims all_but(LoweringContext& ctx, const Expr& x) {
  const int64_t kept = wrap_dim(ctx.integer("dim", 0), x.value().rank());
  return dims_where(x.dims(), [=](int64_t i) { return i != kept; });
}

// (w, norms): w = v * g / |v|, norms shaped like g.
Values lower_weight_norm(LoweringContext& ctx) {
  const Expr v = wide(ctx, "v");
  const ReductionDims dims = all_but(ctx, v);
  const Expr norm = sqrt(sum(v * v, dims));
  const Expr factor = shaped(ctx, "g", v.dtype(), norm.dims()) / norm;
  return {(v * factor).convert(ctx.tensor("v").dtype()), ctx.b.reshape(norm, ctx.tensor("g").dims())};
}

Values lower_weight_norm_backward(LoweringContext& ctx) {
  const Value saved_g = ctx.tensor("saved_g");
  const Expr v = wide(ctx, "saved_v");
  const Expr grad(ctx.b, ctx.operand("grad_w", v.dtype()));
  const Expr product = sum(grad * v, all_but(ctx, v));
  const Expr norm = shaped(ctx, "saved_norms", v.dtype(), product.dims());
  const Expr grad_g = product / norm;
  const Expr grad_v = shaped(ctx, "saved_g", v.dtype(), product.dims()) / norm * (grad - v * (grad_g / norm));
  return {grad_v.convert(ctx.tensor("saved_v").dtype()),
          ctx.b.reshape(grad_g.convert(saved_g.dtype()), saved_g.dims())};
}

// Scales down every slice along `dim` whose p-norm exceeds maxnorm.
Values lower_renorm(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  if (is_complex(self.dtype())) ctx.decline("complex tensors");
  const Expr x = wide(ctx, "self");
  const ReductionDims dims = all_but(ctx, x);
  const Expr norm = dims.keep(vector_norm(x, ctx.real("p"), dims));
  const Expr limit(ctx.b, ctx.operand("maxnorm", x.dtype()));
  return {(x * select(norm > limit, limit / (norm + 1e-7), 1.0)).convert(self.dtype())};
}

}  // namespace

const OpTable& norm_ops() {
  static const OpTable table = {
      {.name = "aten::native_batch_norm",
       .lower = lower_native_batch_norm,
       .static_args = {"eps"},
       .mutates = {"running_mean", "running_var"}},
      {.name = "aten::_native_batch_norm_legit", .lower = lower_native_batch_norm, .static_args = {"eps"}},
      {.name = "aten::_native_batch_norm_legit_no_training",
       .lower = lower_batch_norm_no_training,
       .static_args = {"eps"}},
      {.name = "aten::_batch_norm_with_update", .lower = lower_batch_norm_with_update, .static_args = {"eps"}},
      {.name = "aten::native_batch_norm_backward", .lower = lower_native_batch_norm_backward, .static_args = {"eps"}},
      {.name = "aten::batch_norm_backward", .lower = lower_batch_norm_backward, .static_args = {"eps"}},
      {.name = "aten::native_layer_norm", .lower = lower_native_layer_norm, .static_args = {"eps"}},
      {.name = "aten::native_layer_norm_backward", .lower = lower_native_layer_norm_backward},
      {.name = "aten::native_group_norm", .lower = lower_native_group_norm, .static_args = {"eps"}},
      {.name = "aten::native_group_norm_backward", .lower = lower_native_group_norm_backward},
      {.name = "aten::_weight_norm_interface", .lower = lower_weight_norm},
      {.name = "aten::_weight_norm_interface_backward", .lower = lower_weight_norm_backward},
      {.name = "aten::renorm", .lower = lower_renorm, .static_args = {"p"}},
  };
  return table;
}

}  // namespace torch_pjrt
