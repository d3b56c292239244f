// Factors with orthogonal columns, by Householder reflections. XLA knows the factorization and the product of
// reflections as calls that each of its backends, the CPU's too, replaces by loops or kernels. On the CPU PyTorch's own
// kernels are preferred.
#include <algorithm>

#include "ops/linalg.h"
#include "ops/registry.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Value;
using stablehlo::Values;

namespace {

struct Reflections {
  Value packed, scales;  // [..., m, n], [..., min(m, n)]
};

Reflections reflect(Builder& b, Value matrix) {
  const int64_t m = matrix.dims().end()[-2], n = matrix.dims().end()[-1];
  Dims scales(matrix.dims().begin(), matrix.dims().end() - 2);
  scales.push_back(std::min(m, n));
  const Values results =
      b.custom_call("Qr", {matrix}, {matrix.type(), {matrix.dtype(), scales}}, "", {.api_version = 1});
  return {results[0], results[1]};
}

Value product_of_reflections(Builder& b, Value packed, Value scales) {
  return b.custom_call("ProductOfElementaryHouseholderReflectors", {packed, scales}, {packed.type()}, "",
                       {.api_version = 1})[0];
}

// The first `columns` columns, with zeros where the matrix has fewer.
Value with_columns(Builder& b, Value matrix, int64_t columns) {
  const int64_t own = matrix.dims().back();
  if (columns <= own) return b.slice_dim(matrix, matrix.rank() - 1, 0, columns);
  Dims none(matrix.dims().size(), 0), more = none;
  more.back() = columns - own;
  return b.pad(matrix, b.constant(0, matrix.dtype()), none, more);
}

Value upper_triangle(Builder& b, Value packed, int64_t rows) {
  const Expr part(b, b.slice_dim(packed, packed.rank() - 2, 0, rows));
  return select(matrix_positions(b, part.dims(), false) <= matrix_positions(b, part.dims(), true), part, 0.0);
}

}  // namespace

OrthogonalFactors factor_orthogonally(Builder& b, Value matrix, bool thin) {
  const int64_t m = matrix.dims().end()[-2], n = matrix.dims().end()[-1];
  const auto [packed, scales] = reflect(b, matrix);
  return {product_of_reflections(b, with_columns(b, packed, thin ? std::min(m, n) : m), scales), packed};
}

namespace {

Values lower_qr(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value matrix = ctx.tensor("A");
  const std::string mode = ctx.string("mode", "reduced");
  if (matrix.numel() == 0) ctx.decline("no elements");
  const int64_t m = matrix.dims().end()[-2], n = matrix.dims().end()[-1];
  const bool is_complete = mode == "complete";
  const int64_t rows = is_complete ? m : std::min(m, n);
  if (mode == "r") return {b.splat(0.0, ctx.output(0)), upper_triangle(b, reflect(b, matrix).packed, rows)};
  const auto [q, packed] = factor_orthogonally(b, matrix, !is_complete);
  return {q, upper_triangle(b, packed, rows)};
}

Values lower_geqrf(LoweringContext& ctx) {
  const Value matrix = ctx.tensor("self");
  if (matrix.numel() == 0) ctx.decline("no elements");
  const auto [packed, scales] = reflect(ctx.b, matrix);
  return {packed, scales};
}

Values lower_householder_product(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value reflectors = ctx.tensor("input"), scales = ctx.tensor("tau");
  if (reflectors.numel() == 0 || scales.numel() == 0) ctx.decline("no reflections");
  return {product_of_reflections(b, reflectors, scales)};
}

}  // namespace

const OpTable& orthogonal_ops() {
  static const OpTable table = {
      {.name = "aten::linalg_qr", .lower = lower_qr},
      {.name = "aten::geqrf", .lower = lower_geqrf},
      {.name = "aten::linalg_householder_product", .lower = lower_householder_product},
  };
  return table;
}

}  // namespace torch_pjrt
