// Gather and scatter in PyTorch's terms, shared by the lowerings that index.
//
// Index values have any integer dtype and are in range; StableHLO clamps reads that are not, and drops writes.
// Functions that wrap negative indices say so.
#pragma once

#include <optional>

#include "ops/expression.h"
#include "ops/value_check.h"
#include "stablehlo/builder.h"

namespace torch_pjrt {

// `dim` in [0, rank), counted from the end when negative. A scalar counts as one dimension.
int64_t wrap_dim(int64_t dim, int64_t rank);

// The dtype in which positions below `size` are computed: s32 where they fit.
DType index_dtype(int64_t size);
// `index` as index_dtype(size); `wrapped` also adds `size` to negative indices.
Expr narrow_index(const Expr& index, int64_t size);
Expr wrapped_index(const Expr& index, int64_t size);
// [0, size) along `dim` of `dims`, as index_dtype(size).
Expr positions(stablehlo::Builder& b, const Dims& dims, int64_t dim);

// The checks of eager PyTorch (ops/value_check.h) on the indices of x[indices], where negative ones count from the end,
// and of take and put_.
void check_indices(stablehlo::Builder& b, const Dims& x_dims,
                   const std::vector<std::optional<stablehlo::Value>>& indices);
void check_flat_index(stablehlo::Builder& b, stablehlo::Value index, int64_t numel);
// The words of index_select, index_reduce and embedding.
inline const RangeError kOutOfSelf{ErrorCode::kIndexError, "index out of range in self", std::nullopt};

// How scatter combines an element with an update.
stablehlo::Region replace_update();
stablehlo::Region combine_update(stablehlo::Builder& b, stablehlo::Reduction reduction);

// x[..., index, ...]: dimension `dim` of x is replaced by the dimensions of `index`.
stablehlo::Value take_rows(stablehlo::Builder& b, stablehlo::Value x, int64_t dim, stablehlo::Value index);
// torch.gather: `index` has x's rank, and sizes of at most x's but along `dim`.
stablehlo::Value gather_along(stablehlo::Builder& b, stablehlo::Value x, int64_t dim, stablehlo::Value index);

// Combines row i of `update`, along `dim`, into row index[i] of x. `index` is 1-D.
stablehlo::Value scatter_rows(stablehlo::Builder& b, stablehlo::Value x, int64_t dim, stablehlo::Value index,
                              stablehlo::Value update, const stablehlo::Region& combine);
// torch.scatter: the inverse of gather_along; `update` has the sizes of `index`.
stablehlo::Value scatter_along(stablehlo::Builder& b, stablehlo::Value x, int64_t dim, stablehlo::Value index,
                               stablehlo::Value update, const stablehlo::Region& combine);

// x[indices] in PyTorch's advanced indexing: index tensors for some dimensions, broadcast together, negative ones
// wrapped.
class AdvancedIndex {
 public:
  // `indices` may be shorter than x's rank; at least one of them exists.
  AdvancedIndex(stablehlo::Builder& b, const Dims& x_dims, const std::vector<std::optional<stablehlo::Value>>& indices);

  const Dims& result_dims() const { return result_dims_; }
  stablehlo::Value read(stablehlo::Value x) const;
  // `update` has result_dims().
  stablehlo::Value write(stablehlo::Value x, stablehlo::Value update, const stablehlo::Region& combine) const;

 private:
  stablehlo::Builder& b_;
  Dims x_dims_, result_dims_;
  Dims indexed_dims_;       // of x
  Dims window_dims_;        // of the result: those that x's other dimensions became
  stablehlo::Value index_;  // [broadcast index dims..., indexed_dims_.size()]
};

// Inclusive scan along `dim`.
stablehlo::Value scan(stablehlo::Builder& b, stablehlo::Reduction reduction, stablehlo::Value x, int64_t dim);
// For a 1-D mask, the number of set elements before each one, as index_dtype of its size.
Expr ranks_of_set(stablehlo::Builder& b, stablehlo::Value mask);
// Checks how many elements of a mask, of any dimensions, are set.
void check_count_set(stablehlo::Builder& b, stablehlo::Value mask, int64_t low, int64_t high, const RangeError& error);

// For each value the insertion point into its row of `sequence` [rows, n], which begins at `row_starts` in the flat
// sequence; `sorter` reorders each row. After equal elements when `right`. NaN come last. `row_starts` has the dims of
// `values` and the dtype index_dtype(numel of sequence + n).
Expr binary_search(const Expr& sequence, std::optional<Expr> sorter, int64_t n, const Expr& row_starts,
                   const Expr& values, bool right);

}  // namespace torch_pjrt
