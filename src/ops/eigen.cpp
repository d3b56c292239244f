// Eigenvalues of Hermitian matrices, by a call that XLA's backends replace, and singular values, by rotations of pairs
// of columns (Hestenes, 1958). On the CPU PyTorch's own kernels are preferred.
#include <algorithm>
#include <limits>
#include <utility>

#include "ops/indexing.h"
#include "ops/linalg.h"
#include "ops/registry.h"
#include "ops/sort.h"

namespace torch_pjrt {
namespace {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

Value adjoint(Builder& b, Value x) { return matrix_transpose(b, conj({b, x})); }

Expr real_part(const Expr& x) { return is_complex(x.dtype()) ? real(x) : x; }

double epsilon(DType dtype) {
  return real_dtype(dtype) == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                          : static_cast<double>(std::numeric_limits<float>::epsilon());
}

// The matrix that one triangle of a Hermitian matrix stands for.
Expr from_triangle(Builder& b, Value matrix, bool upper) {
  const Expr lower(b, upper ? adjoint(b, matrix) : matrix), mirrored(b, adjoint(b, lower));
  const Expr row = matrix_positions(b, matrix.dims(), false), column = matrix_positions(b, matrix.dims(), true);
  const Expr diagonal = real_part(lower).convert(matrix.dtype());
  return select(row > column, lower, select(row == column, diagonal, mirrored));
}

// --- singular values ------------------------------------------------------------------------------------------------

// Columns in two halves [..., rows, n / 2]; column i of one is rotated with column i of the other.
struct Halves {
  Expr first, second;
};

Expr columns(const Expr& x, int64_t start, int64_t end) {
  return {x.builder(), x.builder().slice_dim(x, x.value().rank() - 1, start, end)};
}

Expr beside(const Expr& x, const Expr& y) {
  return {x.builder(), x.builder().concatenate({x, y}, x.value().rank() - 1)};
}

// Sums over the first `rows` rows of conj(x) y: [..., 1, columns].
Expr column_products(const Expr& x, const Expr& y, int64_t rows) {
  Builder& b = x.builder();
  const int64_t dim = x.value().rank() - 2;
  const Expr products = conj(Expr(b, b.slice_dim(x, dim, 0, rows))) * Expr(b, b.slice_dim(y, dim, 0, rows));
  return {b, b.unsqueeze(b.reduce(Reduction::kAdd, products, {dim}), dim)};
}

struct Rotated {
  Halves halves;
  Expr change;  // the largest cosine between two columns, a scalar
};

// Makes the first `rows` elements of every pair of columns orthogonal.
Rotated rotate(const Halves& x, int64_t rows) {
  Builder& b = x.first.builder();
  const Expr alpha = real_part(column_products(x.first, x.first, rows));
  const Expr beta = real_part(column_products(x.second, x.second, rows));
  const Expr gamma = column_products(x.first, x.second, rows);
  const Expr size = abs(gamma);
  const Expr scale = sqrt(alpha) * sqrt(beta);
  const Expr is_done = (size == 0.0) | (size <= scale * epsilon(size.dtype()));
  const Expr zeta = (beta - alpha) / (2.0 * select(is_done, 1.0, size));
  const Expr sign = select(zeta >= 0.0, zeta.like(1.0), zeta.like(-1.0));
  const Expr tangent = select(is_done, 0.0, sign / (abs(zeta) + sqrt(1.0 + zeta * zeta)));
  const Expr cosine = rsqrt(1.0 + tangent * tangent), sine = cosine * tangent;
  const Expr phase = gamma / select(is_done, 1.0, size).convert(gamma.dtype());
  const Expr turn = select(is_done, 1.0, phase);
  const auto as = [&](const Expr& y) { return y.convert(gamma.dtype()); };
  const Expr second = x.second * conj(turn);
  Dims all;
  for (int64_t i = 0; i < size.value().rank(); ++i) all.push_back(i);
  const Value change = b.reduce(Reduction::kMax, select(is_done, 0.0, size / scale), all);
  return {{x.first * as(cosine) - second * as(sine), x.first * as(sine) + second * as(cosine)}, {b, change}};
}

// The next pairing of a round-robin tournament: all but the first column move on by one place.
Halves next_round(const Halves& x) {
  const int64_t half = x.first.dims().back();
  if (half == 1) return x;
  return {beside(beside(columns(x.first, 0, 1), columns(x.second, 0, 1)), columns(x.first, 1, half - 1)),
          beside(columns(x.second, 1, half), columns(x.first, half - 1, half))};
}

// A matrix [..., rows, n] over more rows, times a unitary matrix that makes the columns of its first `rows` orthogonal.
Expr orthogonalize_columns(const Expr& matrix, int64_t rows) {
  constexpr int kMaxSweeps = 40;
  Builder& b = matrix.builder();
  const int64_t half = matrix.dims().back() / 2;
  const int64_t rounds = 2 * half - 1;
  const Expr none(b, b.constant(0.0, real_dtype(matrix.dtype())));
  const Values initial{b.constant(0, DType::kS32), none.like(1.0), none, columns(matrix, 0, half),
                       columns(matrix, half, 2 * half)};
  // State: round, the largest cosine in the last sweep and in this one, halves.
  const auto condition = [&](const Values& state) {
    const Expr round(b, state[0]), last(b, state[1]);
    return Values{(round < static_cast<double>(kMaxSweeps * rounds)) & (last > 0.0)};
  };
  const Values result = b.while_loop(initial, condition, [&](const Values& state) {
    const Expr round(b, state[0]), last(b, state[1]);
    const Rotated rotated = rotate({{b, state[3]}, {b, state[4]}}, rows);
    const Halves next = next_round(rotated.halves);
    const Expr largest = maximum(Expr(b, state[2]), rotated.change);
    const Expr ends_sweep = fmod(round, round.like(static_cast<double>(rounds))) == static_cast<double>(rounds - 1);
    return Values{round + 1.0, select(ends_sweep, largest, last), select(ends_sweep, 0.0, largest), next.first,
                  next.second};
  });
  return beside({b, result[3]}, {b, result[4]});
}

struct Singular {
  Value u, s;  // u only if asked for
  Value v;
};

// Columns of each matrix in the order of `index` [..., n].
Value reorder_columns(Builder& b, Value x, Value index) {
  return gather_along(b, x, x.rank() - 1, b.broadcast_to(b.unsqueeze(index, index.rank() - 1), x.dims()));
}

// Of a matrix with m >= n whose elements are neither so small nor so large that their squares are not there.
Singular decompose_scaled(Builder& b, Value matrix, bool wants_vectors, bool full) {
  const int64_t m = matrix.dims().end()[-2], n = matrix.dims().end()[-1], rank = matrix.rank();
  Expr stacked(b, matrix);
  if (wants_vectors) {
    Dims square = matrix.dims();
    square.end()[-2] = n;
    const Expr identity =
        (matrix_positions(b, square, false) == matrix_positions(b, square, true)).convert(matrix.dtype());
    stacked = {b, b.concatenate({matrix, identity}, rank - 2)};
  }
  if (n % 2 == 1) {
    Dims none(static_cast<size_t>(rank), 0), one = none;
    one.back() = 1;
    stacked = {b, b.pad(stacked, b.constant(0, matrix.dtype()), none, one)};
  }
  const Expr turned = orthogonalize_columns(stacked, m);
  const Expr lengths = sqrt(real_part(column_products(turned, turned, m)));
  // What made the number of columns even comes last.
  const Expr is_padding = real_part(column_products(turned, turned, turned.value().dim(rank - 2))) == 0.0;
  const Expr keys = wants_vectors ? select(is_padding, -1.0, lengths) : lengths;
  Dims flat = turned.dims();
  flat.erase(flat.end() - 2);
  const Sorted sorted = sort_along(b, b.reshape(keys, flat), rank - 2, true);
  const auto first = [&](Value x) { return b.slice_dim(x, x.rank() - 1, 0, n); };
  const Value s = first(sorted.values);
  if (!wants_vectors) return {{}, s, {}};
  const Value ordered = first(reorder_columns(b, turned, sorted.indices));
  // Columns of length 0 leave their directions to the factorization.
  const Value scaled = b.slice_dim(ordered, rank - 2, 0, m);
  const auto [q, packed] = factor_orthogonally(b, scaled, !full);
  const Expr triangle(b, b.slice_dim(packed, rank - 2, 0, n));
  const Expr is_diagonal = matrix_positions(b, triangle.dims(), false) == matrix_positions(b, triangle.dims(), true);
  const Expr diagonal(b,
                      b.unsqueeze(b.reduce(Reduction::kAdd, select(is_diagonal, triangle, 0.0), {rank - 2}), rank - 2));
  const Expr size = abs(diagonal);
  const Expr phase =
      select(size == 0.0, diagonal.like(1.0), diagonal / select(size == 0.0, 1.0, size).convert(diagonal.dtype()));
  Value phases = phase;
  if (const int64_t more = q.dims().back() - n; more > 0) {
    Dims ones = phase.dims();
    ones.back() = more;
    phases = beside(phase, {b, b.splat(1.0, {matrix.dtype(), ones})});
  }
  return {Expr(b, q) * Expr(b, phases), s, b.slice_dim(ordered, rank - 2, m, m + n)};
}

Singular decompose(Builder& b, Value matrix, bool wants_vectors, bool full) {
  const int64_t rank = matrix.rank();
  Expr largest(b, b.reduce(Reduction::kMax, abs(Expr(b, matrix)), {rank - 2, rank - 1}));
  largest = select(largest == 0.0, 1.0, largest);
  const Value factor = b.unsqueeze(largest, rank - 2);
  const Expr scale(b, b.unsqueeze(factor, rank - 1));
  Singular result = decompose_scaled(b, Expr(b, matrix) / scale.convert(matrix.dtype()), wants_vectors, full);
  result.s = Expr(b, result.s) * Expr(b, factor);
  return result;
}

// (U, S, Vh)
Values lower_svd(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value matrix = ctx.tensor("A");
  const bool full = ctx.flag("full_matrices"), wants_vectors = ctx.flag("compute_uv", true);
  if (matrix.numel() == 0) ctx.decline("no elements");
  const bool is_wide = matrix.dims().end()[-2] < matrix.dims().end()[-1];
  const Singular result = decompose(b, is_wide ? adjoint(b, matrix) : matrix, wants_vectors, full);
  if (!wants_vectors) return {b.splat(0.0, ctx.output(0)), result.s, b.splat(0.0, ctx.output(2))};
  if (is_wide) return {result.v, result.s, adjoint(b, result.u)};
  return {result.u, result.s, adjoint(b, result.v)};
}

// (eigenvalues [..., n], ascending; eigenvectors [..., n, n]). Of a Hermitian matrix made positive by a multiple of the
// identity, singular values and vectors are those.
Values lower_eigh(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Value matrix = ctx.tensor("A");
  const bool wants_vectors = ctx.flag("compute_v", true);
  const std::string triangle = ctx.string("UPLO", "L");
  if (matrix.numel() == 0) ctx.decline("no elements");
  const int64_t rank = matrix.rank();
  const Expr hermitian = from_triangle(b, matrix, triangle == "U" || triangle == "u");
  const Value row_sums = b.reduce(Reduction::kAdd, abs(hermitian), {rank - 1});
  const Expr shift(b, b.unsqueeze(b.reduce(Reduction::kMax, row_sums, {rank - 2}), rank - 2));
  const Expr row = matrix_positions(b, matrix.dims(), false), column = matrix_positions(b, matrix.dims(), true);
  const Expr added(b, b.unsqueeze(shift.convert(matrix.dtype()), rank - 1));
  const Singular result = decompose(b, select(row == column, hermitian + added, hermitian), true, false);
  const Value values = b.reverse(Expr(b, result.s) - shift, {rank - 2});
  return {values, wants_vectors ? b.reverse(result.v, {rank - 1}) : b.splat(0.0, ctx.output(1))};
}

}  // namespace

const OpTable& eigen_ops() {
  static const OpTable table = {
      {.name = "aten::_linalg_eigh", .lower = lower_eigh},
      {.name = "aten::_linalg_svd", .lower = lower_svd},
  };
  return table;
}

}  // namespace torch_pjrt
