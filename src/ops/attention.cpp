// Scaled dot product attention in the form of ATen's CPU kernel, which reads each of its inputs once and keeps no
// matrix of scores; the recorder asks for it where that kernel can run in the program. Its StableHLO form is the plain
// formula.
#include <cmath>
#include <limits>

#include "ops/expression.h"
#include "ops/host_call.h"
#include "ops/host_kernel.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::DotDims;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

// query [B, H, T, D], key and value [B, H, S, D] -> output [B, H, T, D], logsumexp [B, H, T].
constexpr std::string_view kForward = "aten::_scaled_dot_product_flash_attention_for_cpu";
constexpr std::string_view kBackward = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";

// [B, T, H, D] and [B, T, H]: how the kernels lay out the logarithms of sums, and gradients; and the output, when the
// query is such.
const Dims kHeadsInside{0, 2, 1, 3};
const Dims kHeadsLast{0, 2, 1};
const Dims kHeadsOutside{0, 1, 2, 3};

const Dims& output_order(Builder& b, Value query) {
  const Dims& strides = b.source_of(query).strides;
  return strides[1] < strides[2] ? kHeadsInside : kHeadsOutside;
}

double scale_of(LoweringContext& ctx) {
  return ctx.has("scale") ? ctx.real("scale") : 1 / std::sqrt(static_cast<double>(ctx.tensor("query").dim(3)));
}

void check(LoweringContext& ctx) {
  const Value query = ctx.tensor("query");
  const Value key = ctx.tensor("key");
  if (ctx.real("dropout_p", 0) != 0) ctx.decline("dropout");
  if (query.rank() != 4 || key.rank() != 4 || query.dim(1) != key.dim(1)) ctx.decline("heads that share keys");
}

// The kernel wants elements of a row side by side.
HostCall& add_rows(HostCall& call, Builder& b, Value x) {
  if (b.source_of(x).strides.back() == 1) return call.tensor(x);
  return call.tensor(x, kHeadsOutside);
}

HostCall& add_attributes(HostCall& call, LoweringContext& ctx) {
  call.attribute(0.0).attribute(ctx.flag("is_causal"));
  if (ctx.has("attn_mask")) {
    call.tensor(ctx.tensor("attn_mask"));
  } else {
    call.none();
  }
  return call.attribute(scale_of(ctx));
}

// exp(score - logsumexp) sums to one along the last dimension; [B, H, T, S].
Expr scores(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const DotDims rows_by_rows{{0, 1}, {0, 1}, {3}, {3}};
  Expr x = Expr(b, b.dot_general(ctx.tensor("query"), ctx.tensor("key"), rows_by_rows)) * scale_of(ctx);
  if (ctx.has("attn_mask")) x = x + Expr(b, ctx.operand("attn_mask", x.dtype()));
  if (!ctx.flag("is_causal")) return x;
  const TensorType positions{DType::kS64, x.dims()};
  const Expr row(b, b.iota(positions, 2)), column(b, b.iota(positions, 3));
  return select(column <= row, x, -std::numeric_limits<double>::infinity());
}

Expr keep_last(Builder& b, Value reduced) { return {b, b.unsqueeze(reduced, 3)}; }

Values lower_forward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  check(ctx);
  const Value query = ctx.tensor("query");
  const Value value = ctx.tensor("value");
  if (prefers_host_attention(query.dtype())) {
    Dims dims = query.dims();
    dims[3] = value.dim(3);
    HostCall call(b, kForward);
    add_rows(add_rows(add_rows(call, b, query), b, ctx.tensor("key")), b, value);
    add_attributes(call, ctx).result({query.dtype(), dims}, output_order(b, query));
    return call.result({query.dtype(), {dims[0], dims[1], dims[2]}}, kHeadsLast).emit();
  }
  const Expr x = scores(ctx);
  const Expr largest = keep_last(b, b.reduce(Reduction::kMax, x, {3}));
  const Expr weights = exp(x - largest);
  const Expr sum = keep_last(b, b.reduce(Reduction::kAdd, weights, {3}));
  const Value output = b.dot_general(weights / sum, value, {{0, 1}, {0, 1}, {3}, {2}});
  return {output, b.squeeze(log(sum) + largest, 3)};
}

Values lower_backward(LoweringContext& ctx) {
  Builder& b = ctx.b;
  check(ctx);
  const Value query = ctx.tensor("query"), key = ctx.tensor("key"), value = ctx.tensor("value");
  const Value grad = ctx.tensor("grad_out"), output = ctx.tensor("out"), logsumexp = ctx.tensor("logsumexp");
  if (prefers_host_attention(query.dtype())) {
    HostCall call(b, kBackward);
    for (const Value x : {grad, query, key, value, output}) add_rows(call, b, x);
    add_attributes(call.tensor(logsumexp, kHeadsLast), ctx);
    return call.result(query.type(), kHeadsInside)
        .result(key.type(), kHeadsInside)
        .result(value.type(), kHeadsInside)
        .emit();
  }
  const Expr weights = exp(scores(ctx) - keep_last(b, logsumexp));
  const Expr grad_weights(b, b.dot_general(grad, value, {{0, 1}, {0, 1}, {3}, {3}}));
  const Expr weighted = keep_last(b, b.reduce(Reduction::kAdd, Expr(b, grad) * Expr(b, output), {3}));
  const Expr grad_scores = weights * (grad_weights - weighted) * scale_of(ctx);
  return {b.dot_general(grad_scores, key, {{0, 1}, {0, 1}, {3}, {2}}),
          b.dot_general(grad_scores, query, {{0, 1}, {0, 1}, {2}, {2}}),
          b.dot_general(weights, grad, {{0, 1}, {0, 1}, {2}, {2}})};
}

}  // namespace

const OpTable& attention_ops() {
  static const OpTable table = {
      {.name = kForward, .lower = lower_forward, .static_args = {"dropout_p", "scale"}},
      {.name = kBackward, .lower = lower_backward, .static_args = {"dropout_p", "scale"}},
  };
  return table;
}

}  // namespace torch_pjrt
