// What factorizations of matrices share. A matrix is the last two dimensions of a value; those before are a batch.
#pragma once

#include <optional>

#include "ops/expression.h"
#include "ops/lowering.h"

namespace torch_pjrt {

// What operators give for empty matrices.
stablehlo::Values zero_outputs(LoweringContext& ctx);

stablehlo::Value matrix_transpose(stablehlo::Builder& b, stablehlo::Value x);
stablehlo::Value broadcast_batch(stablehlo::Builder& b, stablehlo::Value x, const Dims& batch);
// s32: the row, or the column, of each element of `dims`.
Expr matrix_positions(stablehlo::Builder& b, const Dims& dims, bool of_columns);
// One row, one column or one element of each matrix, with its dimensions kept; the indices are scalars s32.
stablehlo::Value matrix_element(stablehlo::Builder& b, stablehlo::Value x, std::optional<stablehlo::Value> row,
                                std::optional<stablehlo::Value> column);

// An orthogonal factor [..., m, m], or with m by n elements for `thin`, m >= n, and the packed triangle [..., m, n] of
// a matrix by Householder reflections, as LAPACK has them.
struct OrthogonalFactors {
  stablehlo::Value q, packed;
};
OrthogonalFactors factor_orthogonally(stablehlo::Builder& b, stablehlo::Value matrix, bool thin);

}  // namespace torch_pjrt
