// LU factors with partial pivoting, one column after the other in a loop: a program of one size for any matrix.
#include <algorithm>

#include "ops/linalg.h"
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

// LAPACK's measure for choosing a pivot.
Expr pivot_size(const Expr& x) { return is_complex(x.dtype()) ? abs(real(x)) + abs(imag(x)) : abs(x); }

// The row of the first largest element of each column vector [..., m, 1], rows before `k` excepted: [..., 1, 1].
Expr pivot_row(Builder& b, const Expr& column, const Expr& k) {
  const Expr rows = matrix_positions(b, column.dims(), false);
  const Expr size = select(rows >= k, pivot_size(column), -1.0);
  Dims kept = column.dims();
  kept.end()[-2] = 1;
  const int64_t dim = column.value().rank() - 2;
  const auto keep = [&](Value x) { return Expr(b, b.reshape(x, kept)); };
  const Expr largest = keep(b.reduce(Reduction::kMax, size, {dim}));
  const Expr candidates = select(size == largest, rows, static_cast<double>(column.dims().end()[-2]));
  // A column of NaN has no largest element.
  return minimum(keep(b.reduce(Reduction::kMin, candidates, {dim})), static_cast<double>(column.dims().end()[-2] - 1));
}

// One row of each matrix, another in each: [..., 1, n].
Expr take_row(Builder& b, const Expr& x, const Expr& row) {
  Dims kept = x.dims();
  kept.end()[-2] = 1;
  const Expr masked = select(matrix_positions(b, x.dims(), false) == row, x, 0.0);
  return {b, b.reshape(b.reduce(Reduction::kAdd, masked, {x.value().rank() - 2}), kept)};
}

// State of the loop: k, the matrix, pivots [..., 1, min(m, n)] and info [..., 1, 1].
Values eliminate_column(Builder& b, const Values& state) {
  const Value k = state[0];
  const Expr step(b, k), matrix(b, state[1]), pivots(b, state[2]), info(b, state[3]);
  const Expr rows = matrix_positions(b, matrix.dims(), false);
  const Expr columns = matrix_positions(b, matrix.dims(), true);
  const Expr row = pivot_row(b, {b, matrix_element(b, matrix, std::nullopt, k)}, step);
  const Expr chosen = take_row(b, matrix, row);
  const Expr current(b, matrix_element(b, matrix, k, std::nullopt));
  const Expr swapped = select(rows == step, chosen, select(rows == row, current, matrix));
  const Expr pivot(b, matrix_element(b, chosen, std::nullopt, k));
  const Expr column(b, matrix_element(b, swapped, std::nullopt, k));
  const Expr below = matrix_positions(b, column.dims(), false) > step;
  const Expr is_zero = pivot == 0.0;
  const Expr multipliers = select(below & ~is_zero, column / pivot, column);
  const Expr update = select((rows > step) & (columns > step), multipliers * chosen, 0.0);
  const Expr reduced = select(columns == step, multipliers, swapped - update);
  const Expr at_k = matrix_positions(b, pivots.dims(), true) == step;
  return {step + 1.0, reduced, select(at_k, row + 1.0, pivots), select(is_zero & (info == 0.0), step + 1.0, info)};
}

Dims batch_and(const Value& matrix, const Dims& last) {
  Dims dims(matrix.dims().begin(), matrix.dims().end() - 2);
  dims.insert(dims.end(), last.begin(), last.end());
  return dims;
}

Values lower_lu_factor_ex(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value matrix = ctx.tensor("A");
  if (!ctx.flag("pivot", true)) ctx.decline("no pivoting");
  if (matrix.numel() == 0) return zero_outputs(ctx);
  const int64_t steps = std::min(matrix.dims().end()[-1], matrix.dims().end()[-2]);
  const Values state = b.while_loop(
      {b.constant(0, DType::kS32), matrix, b.splat(0, {DType::kS32, batch_and(matrix, {1, steps})}),
       b.splat(0, {DType::kS32, batch_and(matrix, {1, 1})})},
      [&](const Values& arguments) {
        return Values{b.compare(Comparison::kLt, arguments[0], b.constant(steps, DType::kS32))};
      },
      [&](const Values& arguments) { return eliminate_column(b, arguments); });
  return {state[1], b.reshape(state[2], batch_and(matrix, {steps})), b.reshape(state[3], batch_and(matrix, {}))};
}

// The permutation matrix of a sequence of row exchanges: the exchanges applied to the rows of an identity, transposed.
Value permutation_matrix(Builder& b, Value pivots, const TensorType& type) {
  const int64_t steps = pivots.dims().back();
  Dims kept = pivots.dims();
  kept.insert(kept.end() - 1, 1);
  const Value exchanges = b.reshape(pivots, kept);
  const Expr rows = matrix_positions(b, type.dims, false);
  const Expr identity = (rows == matrix_positions(b, type.dims, true)).convert(type.dtype);
  if (steps == 0) return identity;
  const Values state = b.while_loop(
      {b.constant(0, DType::kS32), identity},
      [&](const Values& arguments) {
        return Values{b.compare(Comparison::kLt, arguments[0], b.constant(steps, DType::kS32))};
      },
      [&](const Values& arguments) {
        const Expr k(b, arguments[0]), matrix(b, arguments[1]);
        const Expr row = Expr(b, matrix_element(b, exchanges, std::nullopt, k)) - 1.0;
        const Expr current(b, matrix_element(b, matrix, k, std::nullopt));
        return Values{k + 1.0, select(rows == k, take_row(b, matrix, row), select(rows == row, current, matrix))};
      });
  return matrix_transpose(b, state[1]);
}

// L and U, [..., m, k] and [..., k, n] with k = min(m, n).
Values triangles(Builder& b, Value lu) {
  const int64_t m = lu.dims().end()[-2], n = lu.dims().end()[-1], k = std::min(m, n);
  const Expr left(b, b.slice_dim(lu, lu.rank() - 1, 0, k));
  const Expr right(b, b.slice_dim(lu, lu.rank() - 2, 0, k));
  const auto difference = [&](const Expr& x) {
    return matrix_positions(b, x.dims(), false) - matrix_positions(b, x.dims(), true);
  };
  const Expr below = difference(left);
  return {select(below > 0.0, left, (below == 0.0).convert(left.dtype())),
          select(difference(right) <= 0.0, right, 0.0)};
}

Values lower_lu_unpack(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value lu = ctx.tensor("LU_data");
  const Value none = b.splat(0.0, {lu.dtype(), {0}});
  Values result{none, none, none};
  if (ctx.flag("unpack_pivots", true)) {
    const int64_t m = lu.dims().end()[-2];
    result[0] = permutation_matrix(b, ctx.operand("LU_pivots", DType::kS32), {lu.dtype(), batch_and(lu, {m, m})});
  }
  if (ctx.flag("unpack_data", true) && lu.numel() == 0) {
    result[1] = b.splat(0, ctx.output(1));
    result[2] = b.splat(0, ctx.output(2));
  } else if (ctx.flag("unpack_data", true)) {
    const Values parts = triangles(b, lu);
    result[1] = parts[0];
    result[2] = parts[1];
  }
  return result;
}

}  // namespace

const OpTable& lu_ops() {
  static const OpTable table = {
      {"aten::linalg_lu_factor_ex", lower_lu_factor_ex},
      {"aten::lu_unpack", lower_lu_unpack},
  };
  return table;
}

}  // namespace torch_pjrt
