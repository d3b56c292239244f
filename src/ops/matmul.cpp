// Matrix products: each is one dot_general in the operands' own dtype, which accumulates in float32 for the half types.
#include <algorithm>
#include <cmath>

#include "ops/expression.h"
#include "ops/host_call.h"
#include "ops/host_kernel.h"
#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::DotDims;
using stablehlo::Value;
using stablehlo::Values;

const DotDims kMatrixMatrix{{}, {}, {1}, {0}};
const DotDims kBatchedMatrix{{0}, {0}, {2}, {1}};
const DotDims kVector{{}, {}, {0}, {0}};

// lhs [m, k] times rhs [k, n] by an ATen kernel, or the same with a batch in front.
Value host_product(Builder& b, Value lhs, Value rhs) {
  Dims dims = lhs.dims();
  dims.back() = rhs.dims().back();
  HostCall call(b, lhs.rank() == 3 ? "aten::bmm.out" : "aten::mm.out");
  return call.tensor(lhs).tensor(rhs).out(0).result({lhs.dtype(), dims}).emit()[0];
}

Value dot(LoweringContext& ctx, Value lhs, Value rhs, const DotDims& dims, DType dtype) {
  if (lhs.dtype() == DType::kPred) ctx.decline("not implemented for 'Bool'");
  const bool is_batched = &dims == &kBatchedMatrix;
  const bool is_matrix = is_batched || (&dims == &kMatrixMatrix && rhs.rank() == 2);
  if (is_matrix && dtype == lhs.dtype() && lhs.rank() == rhs.rank()) {
    const auto last = lhs.rank() - 1;
    if (prefers_host_matmul(dtype, is_batched ? lhs.dim(0) : 1, lhs.dim(last - 1), lhs.dim(last), rhs.dim(last))) {
      return host_product(ctx.b, lhs, rhs);
    }
  }
  return ctx.b.dot_general(lhs, rhs, dims, dtype);
}

Value dot(LoweringContext& ctx, Value lhs, Value rhs, const DotDims& dims) {
  return dot(ctx, lhs, rhs, dims, ctx.dtype("out_dtype").value_or(lhs.dtype()));
}

// Times the number argument `number`; 1 leaves no trace in the program.
Value scale(LoweringContext& ctx, std::string_view number, Value x) {
  if (ctx.static_number(number) == 1.0) return x;
  const bool is_integer = !is_floating(x.dtype()) && !is_complex(x.dtype());
  if (is_integer && is_floating(ctx.result_type({number}))) ctx.decline("fractional ", number, " for integer tensors");
  return ctx.b.multiply(x, ctx.b.broadcast_to(ctx.operand(number, x.dtype()), x.dims()));
}

// beta * self + alpha * product. As in BLAS, beta == 0 means that self is not read, so that its NaNs do not spread.
Value add_to_self(LoweringContext& ctx, Value product) {
  Builder& b = ctx.b;
  const Value scaled = scale(ctx, "alpha", product);
  if (ctx.static_number("beta") == 0.0) return scaled;
  const Value self = scale(ctx, "beta", ctx.operand("self", product.dtype()));
  return b.add(b.broadcast_to(self, product.dims()), scaled);
}

// beta * self + alpha * lhs @ rhs. Half types are scaled in float32 and rounded once; an unscaled sum stays in their
// own type, which matrix units fuse.
Value add_product(LoweringContext& ctx, std::string_view lhs, std::string_view rhs, const DotDims& dims) {
  const Value x = ctx.tensor(lhs);
  if (x.dtype() == DType::kPred) ctx.decline("not implemented for 'Bool'");
  const bool is_plain = ctx.static_number("alpha") == 1.0 && ctx.static_number("beta") == 1.0;
  const DType dtype = ctx.dtype("out_dtype").value_or(is_plain ? x.dtype() : accumulate_dtype(x.dtype()));
  return add_to_self(ctx, dot(ctx, x, ctx.tensor(rhs), dims, dtype));
}

Value conjugate(Builder& b, Value x) { return is_complex(x.dtype()) ? b.complex(b.real(x), b.negate(b.imag(x))) : x; }

Values lower_mm(LoweringContext& ctx) { return {dot(ctx, ctx.tensor("self"), ctx.tensor("mat2"), kMatrixMatrix)}; }

Values lower_bmm(LoweringContext& ctx) { return {dot(ctx, ctx.tensor("self"), ctx.tensor("mat2"), kBatchedMatrix)}; }

Values lower_mv(LoweringContext& ctx) { return {dot(ctx, ctx.tensor("self"), ctx.tensor("vec"), kMatrixMatrix)}; }

Values lower_dot(LoweringContext& ctx) { return {dot(ctx, ctx.tensor("self"), ctx.tensor("tensor"), kVector)}; }

Values lower_vdot(LoweringContext& ctx) {
  return {dot(ctx, conjugate(ctx.b, ctx.tensor("self")), ctx.tensor("other"), kVector)};
}

Values lower_addmm(LoweringContext& ctx) { return {add_product(ctx, "mat1", "mat2", kMatrixMatrix)}; }

Values lower_baddbmm(LoweringContext& ctx) { return {add_product(ctx, "batch1", "batch2", kBatchedMatrix)}; }

Values lower_addbmm(LoweringContext& ctx) { return {add_product(ctx, "batch1", "batch2", {{}, {}, {0, 2}, {0, 1}})}; }

Values lower_addmv(LoweringContext& ctx) { return {add_product(ctx, "mat", "vec", kMatrixMatrix)}; }

Values lower_addr(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const DType dtype = ctx.result_type({"self", "vec1", "vec2"});
  const Value column = b.unsqueeze(ctx.operand("vec1", dtype), 1);
  const Value row = b.unsqueeze(ctx.operand("vec2", dtype), 0);
  const auto [lhs, rhs] = b.broadcast_pair(column, row);
  if (dtype != DType::kPred) {
    // (alpha * vec1) * vec2: half types are rounded in ATen's order.
    const Value product = b.multiply(scale(ctx, "alpha", lhs), rhs);
    if (ctx.static_number("beta") == 0.0) return {product};
    const Value self = scale(ctx, "beta", ctx.operand("self", dtype));
    return {b.add(b.broadcast_to(self, product.dims()), product)};
  }
  // On bool, product and sum are "and" and "or".
  Value product = b.logical_and(lhs, rhs);
  if (ctx.static_number("alpha") != 1.0) {
    product = b.logical_and(product, b.broadcast_to(ctx.operand("alpha", dtype), product.dims()));
  }
  if (ctx.static_number("beta") == 0.0) return {product};
  return {b.logical_or(b.broadcast_to(ctx.operand("self", dtype), product.dims()), product)};
}

Values lower_addmm_activation(LoweringContext& ctx) {
  const Expr x(ctx.b, lower_addmm(ctx)[0]);
  if (!ctx.flag("use_gelu")) return {maximum(x, 0.0)};
  return {x * 0.5 * (1.0 + erf(x * M_SQRT1_2))};
}

Values lower_int_mm(LoweringContext& ctx) {
  return {ctx.b.dot_general(ctx.tensor("self"), ctx.tensor("mat2"), kMatrixMatrix, DType::kS32)};
}

// Sum over `sumdim` of i1 * i2 * i3, each with dimensions of size 1 inserted where its `expand` says.
Values lower_trilinear(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const auto expanded = [&](std::string_view name, std::string_view dims) {
    Value x = ctx.tensor(name);
    for (const int64_t dim : ctx.ints(dims)) x = b.unsqueeze(x, dim);
    return Expr(b, b.convert(x, accumulate_dtype(x.dtype())));
  };
  const Expr product = expanded("i1", "expand1") * expanded("i2", "expand2") * expanded("i3", "expand3");
  Dims sum_dims = ctx.ints("sumdim");
  std::sort(sum_dims.begin(), sum_dims.end());
  const Value sum = b.reduce(stablehlo::Reduction::kAdd, product, sum_dims);
  return {b.convert(sum, ctx.tensor("i1").dtype())};
}

}  // namespace

const OpTable& matmul_ops() {
  static const OpTable table = {
      {.name = "aten::mm", .lower = lower_mm},
      {.name = "aten::bmm", .lower = lower_bmm},
      {.name = "aten::mv", .lower = lower_mv},
      {.name = "aten::dot", .lower = lower_dot},
      {.name = "aten::vdot", .lower = lower_vdot},
      {.name = "aten::addmm", .lower = lower_addmm, .static_args = {"beta"}, .constant_defaults = {"alpha"}},
      {.name = "aten::baddbmm", .lower = lower_baddbmm, .static_args = {"beta"}, .constant_defaults = {"alpha"}},
      {.name = "aten::addbmm", .lower = lower_addbmm, .static_args = {"beta"}, .constant_defaults = {"alpha"}},
      {.name = "aten::addmv", .lower = lower_addmv, .static_args = {"beta"}, .constant_defaults = {"alpha"}},
      {.name = "aten::addr", .lower = lower_addr, .static_args = {"beta"}, .constant_defaults = {"alpha"}},
      {.name = "aten::_addmm_activation",
       .lower = lower_addmm_activation,
       .static_args = {"beta"},
       .constant_defaults = {"alpha"}},
      {.name = "aten::_int_mm", .lower = lower_int_mm},
      {.name = "aten::_trilinear", .lower = lower_trilinear},
  };
  return table;
}

}  // namespace torch_pjrt
