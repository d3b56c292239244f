// Triangular systems, Cholesky factors and cross products. LU factors are in lu.cpp.
#include "ops/linalg.h"

#include <algorithm>

#include "ops/expression.h"
#include "ops/indexing.h"
#include "ops/registry.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

Value matrix_transpose(Builder& b, Value x) {
  Dims order;
  for (int64_t i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order.end()[-1], order.end()[-2]);
  return b.transpose(x, order);
}

Value broadcast_batch(Builder& b, Value x, const Dims& batch) {
  Dims dims = batch;
  dims.push_back(x.dim(x.rank() - 2));
  dims.push_back(x.dim(x.rank() - 1));
  return b.broadcast_to(x, dims);
}

Expr matrix_positions(Builder& b, const Dims& dims, bool of_columns) {
  const auto rank = static_cast<int64_t>(dims.size());
  return {b, b.iota({DType::kS32, dims}, of_columns ? rank - 1 : rank - 2)};
}

Value matrix_element(Builder& b, Value x, std::optional<Value> row, std::optional<Value> column) {
  Values starts(static_cast<size_t>(x.rank()), b.constant(0, DType::kS32));
  Dims sizes = x.dims();
  if (row) starts.end()[-2] = *row, sizes.end()[-2] = 1;
  if (column) starts.end()[-1] = *column, sizes.end()[-1] = 1;
  return b.dynamic_slice(x, starts, sizes);
}

Values zero_outputs(LoweringContext& ctx) {
  Values outputs;
  for (size_t i = 0; i < ctx.num_outputs(); ++i) outputs.push_back(ctx.b.splat(0, ctx.output(i)));
  return outputs;
}

namespace {

Dims batch_dims(const Value& x) { return Dims(x.dims().begin(), x.dims().end() - 2); }

// The common batch dimensions of two stacks of matrices, by PyTorch's rule.
Dims common_batch(LoweringContext& ctx, const Value& x, const Value& y) {
  Dims longer = batch_dims(x), shorter = batch_dims(y);
  if (longer.size() < shorter.size()) std::swap(longer, shorter);
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& size = longer[offset + i];
    if (size != shorter[i] && size != 1 && shorter[i] != 1) ctx.decline("batches that do not broadcast");
    if (size == 1) size = shorter[i];
  }
  return longer;
}

Values lower_solve_triangular(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value matrix = ctx.tensor("self");
  const Value rhs = ctx.tensor("B");
  if (matrix.numel() == 0 || rhs.numel() == 0) return zero_outputs(ctx);
  const Dims batch = common_batch(ctx, matrix, rhs);
  return {b.triangular_solve(broadcast_batch(b, matrix, batch), broadcast_batch(b, rhs, batch), ctx.flag("left", true),
                             !ctx.flag("upper"), ctx.flag("unitriangular"), false)};
}

Values lower_triangular_solve(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value rhs = ctx.tensor("self");
  Value matrix = ctx.tensor("A");
  if (matrix.numel() == 0 || rhs.numel() == 0) return zero_outputs(ctx);
  const Dims batch = common_batch(ctx, matrix, rhs);
  matrix = broadcast_batch(b, matrix, batch);
  const Value solution = b.triangular_solve(matrix, broadcast_batch(b, rhs, batch), true, !ctx.flag("upper", true),
                                            ctx.flag("unitriangular"), ctx.flag("transpose"));
  return {solution, matrix};
}

// For each matrix the order of its first leading minor that is not positive, 0 when there is none: column by column.
Value first_bad_minor(Builder& b, Value matrix) {
  const int64_t n = matrix.dim(matrix.rank() - 1);
  const Value none = b.splat(0, {DType::kS32, batch_dims(matrix)});
  const auto condition = [&](const Values& state) {
    return Values{b.compare(Comparison::kLt, state[0], b.constant(n, DType::kS32))};
  };
  const auto body = [&](const Values& state) {
    const Value k = state[0];
    const Expr next = Expr(b, k) + 1.0;
    const Expr column(b, matrix_element(b, state[1], std::nullopt, k));
    const Expr pivot(b, matrix_element(b, column, k, std::nullopt));
    const Expr size = is_complex(pivot.dtype()) ? real(pivot) : pivot;
    const Expr is_bad(b, b.reshape(~(size > 0.0), none.dims()));
    const Expr info(b, state[2]);
    const Expr found = select(is_bad & (info == 0.0), {b, b.broadcast_to(next, none.dims())}, info);
    const Expr rank_one = column * Expr(b, matrix_transpose(b, conj(column))) / pivot;
    return Values{next, Expr(b, state[1]) - rank_one, found};
  };
  return b.while_loop({b.constant(0, DType::kS32), matrix, none}, condition, body)[2];
}

Values lower_cholesky_ex(LoweringContext& ctx) {
  Builder& b = ctx.b;
  Value matrix = ctx.tensor("self");
  if (matrix.numel() == 0) return zero_outputs(ctx);
  // Either triangle alone is read.
  const bool upper = ctx.flag("upper");
  if (upper) matrix = matrix_transpose(b, conj({b, matrix}));
  const Expr row = matrix_positions(b, matrix.dims(), false);
  const Expr column = matrix_positions(b, matrix.dims(), true);
  const Expr factor = select(row >= column, {b, b.cholesky(matrix, true)}, 0.0);
  const Expr magnitude = is_complex(factor.dtype()) ? real(factor) : factor;
  Dims all;
  for (int64_t i = 0; i < matrix.rank(); ++i) all.push_back(i);
  const Value has_failed = b.reduce(Reduction::kOr, is_nan(magnitude), all);
  const Value info = b.if_else(
      has_failed, [&](const Values&) { return Values{first_bad_minor(b, matrix)}; },
      [&](const Values&) { return Values{b.splat(0, {DType::kS32, batch_dims(matrix)})}; })[0];
  return {upper ? matrix_transpose(b, conj(factor)) : factor.value(), info};
}

// The solution of A X = B by A's Cholesky factor.
Value cholesky_solve(Builder& b, Value factor, Value rhs, bool upper) {
  // lower: L L^H, upper: U^H U. The first system has the factor's adjoint when it is an upper one.
  const auto solve = [&](Value x, bool adjoint) {
    return b.triangular_solve(factor, x, true, !upper, false, adjoint, adjoint);
  };
  return solve(solve(rhs, upper), !upper);
}

Values lower_cholesky_solve(LoweringContext& ctx) {
  const Value rhs = ctx.tensor("self");
  const Value factor = ctx.tensor("A");
  if (rhs.numel() == 0) return zero_outputs(ctx);
  return {cholesky_solve(ctx.b, factor, rhs, ctx.flag("upper"))};
}

Values lower_cholesky_inverse(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value factor = ctx.tensor("self");
  if (factor.numel() == 0) return zero_outputs(ctx);
  const Expr row = matrix_positions(b, factor.dims(), false);
  const Expr column = matrix_positions(b, factor.dims(), true);
  const Value identity = (row == column).convert(factor.dtype());
  return {cholesky_solve(b, factor, identity, ctx.flag("upper"))};
}

Values lower_cross(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const DType dtype = ctx.result_type({"self", "other"});
  const auto [x, y] = b.broadcast_pair(ctx.operand("self", dtype), ctx.operand("other", dtype));
  const int64_t given = ctx.integer("dim", -1);
  const int64_t dim = given < 0 ? given + x.rank() : given;
  const auto rolled = [&, dim = dim](Value value, int64_t by) {
    return Expr(b, b.concatenate({b.slice_dim(value, dim, by, 3), b.slice_dim(value, dim, 0, by)}, dim));
  };
  return {rolled(x, 1) * rolled(y, 2) - rolled(x, 2) * rolled(y, 1)};
}

}  // namespace

const OpTable& linalg_ops() {
  static const OpTable table = {
      {"aten::linalg_solve_triangular", lower_solve_triangular}, {"aten::triangular_solve", lower_triangular_solve},
      {"aten::linalg_cholesky_ex", lower_cholesky_ex},           {"aten::_cholesky_solve_helper", lower_cholesky_solve},
      {"aten::cholesky_inverse", lower_cholesky_inverse},        {"aten::linalg_cross", lower_cross},
  };
  return table;
}

}  // namespace torch_pjrt
