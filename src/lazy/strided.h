// How a strided view reads and writes the value of its storage. Integer arithmetic only.
//
// A storage's value has row-major dimensions, and its row-major flattening is the storage's memory. A view is sizes,
// strides and an offset into that memory, in elements of the value's dtype. A plan is the cheapest exact program for
// one geometry; the offset stays out of it and becomes run-time start indices, so that `a[i]` with a changing `i` is
// one program.
//
// Dimensions of size 1 and of stride 0 are set aside; the others, by descending stride t1 > t2 > ..., become levels.
// Level j splits a block of t(j-1) elements (the whole value for the first) into rows of t(j) and takes `size` of them.
// That is exact while no row range crosses the end of its block; `plan_for` picks the first form where it does not at
// this offset:
//   0. the source's own dimensions as further levels, so that the common slice needs no reshape,
//   1. the view's dimensions alone,
//   2. the same with neighbours merged where the view is contiguous across them,
//   3. the elements that the view spans, cut out first: then every level starts at 0.
// Views that overlap themselves (unfold with step < size) read by a gather of flat indices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/tensor_type.h"

namespace torch_pjrt::lazy {

struct StridedView {
  Dims sizes, strides;
  int64_t offset = 0;
};

struct StridedPlan {
  enum class Kind : uint8_t {
    kEmpty,   // the view has no elements
    kLevels,  // reshape, slice, transpose
    kGather,  // flat indices; starts[0] is the offset
  };

  // One container dimension: rows [start, start + size) of `extent`. `start_index` is the position of `start` among the
  // plan's starts, or -1 when it is 0.
  struct Level {
    int64_t extent = 1, size = 1, stride = 1;
    int start_index = -1;
  };
  // Consecutive levels that one reshape reaches: the last dimension is padded from `length` to `padded` elements, then
  // split into the levels' extents and, when `block` is not 1, a last dimension of `block`, which the next stage
  // splits.
  struct Stage {
    int64_t length = 0, padded = 0, block = 1;
    std::vector<Level> levels;
  };

  Kind kind = Kind::kEmpty;
  Dims source, sizes, strides;
  // Names this plan among those of its geometry: plan_variant(source, sizes, strides, variant) is this plan.
  int64_t variant = 0;
  // How many elements past the source the view reaches; part of the variant.
  int64_t shortfall = 0;
  // Start indices that a read or write takes at run time; see starts().
  int num_starts = 0;
  // When not 0, this many flat elements from starts[0] on are cut out before the stages.
  int64_t window = 0;
  std::vector<Stage> stages;
  // The sliced container, without dimensions of size 1; then permuted into the view's order; then these become the
  // view's dimensions `kept`. The other dimensions of the view have size 1 or are broadcast (`broadcasts`).
  Dims sorted_sizes, permutation, kept;
  bool broadcasts = false;
  // Reading returns the source value itself.
  bool is_identity = false;
  // The view holds each element of the source exactly once, so a write does not need the old value.
  bool covers_source = false;
  // Strides of the levels with a run-time start, outermost first.
  Dims start_strides;
  // For each level but the first, how far the remaining offset may reach before its rows cross a block; with the stride
  // that the offset is reduced by first.
  struct Bound {
    int64_t stride = 1, slack = 0;
  };
  std::vector<Bound> bounds;

  // Whether the view at `offset` is read by this plan.
  bool holds_at(int64_t offset) const;
};

// Memoised for the process; thread safe. Strides are not negative. Elements that a view reaches past the source read as
// 0 and are lost when written; a program then depends on how far it reaches.
const StridedPlan& plan_for(std::span<const int64_t> source, std::span<const int64_t> sizes,
                            std::span<const int64_t> strides, int64_t offset);
inline const StridedPlan& plan_for(const Dims& source, const StridedView& view) {
  return plan_for(source, view.sizes, view.strides, view.offset);
}

// The plan with this `variant`.
const StridedPlan& plan_variant(const Dims& source, const Dims& sizes, const Dims& strides, int64_t variant);

// The start indices of `plan` for a concrete offset: writes plan.num_starts numbers.
void starts(const StridedPlan& plan, int64_t offset, int64_t* out);

}  // namespace torch_pjrt::lazy
