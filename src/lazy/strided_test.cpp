#include "lazy/strided.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace torch_pjrt::lazy {
namespace {

using Data = std::vector<int64_t>;

// Calls `visit` with the flat element index for every index of the view, in row-major order.
template <typename Visit>
void for_each_element(const Dims& sizes, const Dims& strides, int64_t offset, const Visit& visit) {
  const int64_t numel = product(sizes);
  for (int64_t i = 0; i < numel; ++i) {
    int64_t rest = i, at = offset;
    for (size_t d = sizes.size(); d-- > 0;) {
      at += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    visit(i, at);
  }
}

int64_t read_flat(const Data& memory, int64_t at) { return at < std::ssize(memory) ? memory[at] : 0; }

// For every element of the sorted, sliced container, its flat element, following the stages as a program would.
Data container_elements(const StridedPlan& plan, const Data& starts) {
  Data blocks = {0};  // flat position where each block of the rows chosen so far begins
  for (const auto& stage : plan.stages) {
    int64_t inner = stage.padded;
    EXPECT_GE(stage.padded, stage.length);
    for (const auto& level : stage.levels) {
      EXPECT_EQ(inner % level.extent, 0);
      inner /= level.extent;
      const int64_t start = level.start_index < 0 ? 0 : starts[level.start_index];
      EXPECT_GE(start, 0);
      EXPECT_LE(start + level.size, level.extent);
      Data next;
      for (const int64_t block : blocks) {
        for (int64_t i = 0; i < level.size; ++i) next.push_back(block + (start + i) * inner);
      }
      blocks = std::move(next);
    }
    EXPECT_EQ(inner, stage.block);
  }
  const int64_t first = plan.window != 0 ? starts[0] : 0;
  for (int64_t& block : blocks) block += first;
  return blocks;
}

// The flat element of each of the view's elements.
Data planned_elements(const StridedPlan& plan, const Data& starts) {
  if (plan.kind == StridedPlan::Kind::kEmpty) return {};
  Data elements;
  if (plan.kind == StridedPlan::Kind::kGather) {
    for_each_element(plan.sizes, plan.strides, starts[0], [&](int64_t, int64_t at) { elements.push_back(at); });
    return elements;
  }
  const Data container = container_elements(plan, starts);
  EXPECT_EQ(product(plan.sorted_sizes), std::ssize(container));
  // Strides of the view in the sorted container: permuted for kept dimensions, 0 for the others.
  const Dims sorted_strides = row_major_strides(plan.sorted_sizes);
  Dims strides(plan.sizes.size(), 0);
  for (size_t i = 0; i < plan.kept.size(); ++i) strides[plan.kept[i]] = sorted_strides[plan.permutation[i]];
  for_each_element(plan.sizes, strides, 0, [&](int64_t, int64_t at) { elements.push_back(container[at]); });
  return elements;
}

void check_view(const Dims& source, const StridedView& view) {
  SCOPED_TRACE("source " + to_string(source) + " sizes " + to_string(view.sizes) + " strides " +
               to_string(view.strides) + " offset " + std::to_string(view.offset));
  const StridedPlan& plan = plan_for(source, view);
  ASSERT_EQ(&plan, &plan_variant(source, view.sizes, view.strides, plan.variant));
  Data start_values(static_cast<size_t>(plan.num_starts));
  starts(plan, view.offset, start_values.data());
  Data expected;
  for_each_element(view.sizes, view.strides, view.offset, [&](int64_t, int64_t at) { expected.push_back(at); });
  const Data elements = planned_elements(plan, start_values);
  ASSERT_EQ(elements, expected);
  Data memory(static_cast<size_t>(product(source)));
  std::iota(memory.begin(), memory.end(), 1);
  if (plan.is_identity) {
    EXPECT_EQ(view.sizes, source);
    ASSERT_EQ(expected.size(), memory.size());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(read_flat(memory, expected[i]), memory[i]);
  }
  if (plan.covers_source) {
    Data sorted = expected;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < memory.size(); ++i) ASSERT_EQ(sorted.at(i), static_cast<int64_t>(i));
    ASSERT_EQ(sorted.size(), memory.size());
  }
}

// Random chains of PyTorch's view operators over a contiguous tensor.
class ViewMaker {
 public:
  explicit ViewMaker(uint32_t seed) : random_(seed) {}

  Dims random_dims() {
    Dims dims(pick(0, 4));
    for (int64_t& dim : dims) dim = pick(1, 6);
    return dims;
  }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  void apply_random(StridedView& view) {
    switch (pick(0, 7)) {
      case 0:
        return slice(view);
      case 1:
        return swap(view);
      case 2:
        return select(view);
      case 3:
        return diagonal(view);
      case 4:
        return unfold(view);
      case 5:
        return split(view);
      case 6:
        return unsqueeze(view);
      default:
        return expand(view);
    }
  }

  // Arbitrary geometry, as from as_strided.
  StridedView junk(int64_t numel, int64_t overshoot) {
    StridedView view;
    int64_t last = 0;
    for (int64_t i = pick(0, 3); i-- > 0;) {
      view.sizes.push_back(pick(1, 4));
      view.strides.push_back(pick(0, 9));
      last += (view.sizes.back() - 1) * view.strides.back();
    }
    const int64_t room = numel + overshoot - 1 - last;
    if (room < 0) return {{}, {}, 0};
    view.offset = pick(0, room);
    return view;
  }

 private:
  size_t dim(const StridedView& view) { return static_cast<size_t>(pick(0, std::ssize(view.sizes) - 1)); }

  void slice(StridedView& view) {
    if (view.sizes.empty()) return;
    const size_t d = dim(view);
    const int64_t start = pick(0, view.sizes[d]), step = pick(1, 3);
    view.offset += std::min(start, std::max<int64_t>(view.sizes[d] - 1, 0)) * view.strides[d];
    const int64_t length = pick(start, view.sizes[d]) - start;
    view.sizes[d] = (length + step - 1) / step;
    view.strides[d] *= step;
  }
  void swap(StridedView& view) {
    if (view.sizes.empty()) return;
    const size_t a = dim(view), b = dim(view);
    std::swap(view.sizes[a], view.sizes[b]);
    std::swap(view.strides[a], view.strides[b]);
  }
  void select(StridedView& view) {
    if (view.sizes.empty()) return;
    const size_t d = dim(view);
    if (view.sizes[d] == 0) return;
    view.offset += pick(0, view.sizes[d] - 1) * view.strides[d];
    remove(view, d);
  }
  void diagonal(StridedView& view) {
    if (view.sizes.size() < 2) return;
    const size_t a = dim(view), b = dim(view);
    if (a == b || view.sizes[a] == 0 || view.sizes[b] == 0) return;
    const int64_t shift = pick(0, view.sizes[b] - 1);
    view.offset += shift * view.strides[b];
    view.sizes.push_back(std::min(view.sizes[a], view.sizes[b] - shift));
    view.strides.push_back(view.strides[a] + view.strides[b]);
    remove(view, std::max(a, b));
    remove(view, std::min(a, b));
  }
  void unfold(StridedView& view) {
    if (view.sizes.empty()) return;
    const size_t d = dim(view);
    if (view.sizes[d] == 0) return;
    const int64_t size = pick(1, view.sizes[d]), step = pick(1, 3);
    view.sizes.push_back(size);
    view.strides.push_back(view.strides[d]);
    view.sizes[d] = (view.sizes[d] - size) / step + 1;
    view.strides[d] *= step;
  }
  void split(StridedView& view) {
    if (view.sizes.empty()) return;
    const size_t d = dim(view);
    for (const int64_t part : {2, 3}) {
      if (view.sizes[d] == 0 || view.sizes[d] % part != 0) continue;
      view.sizes.insert(view.sizes.begin() + static_cast<int64_t>(d) + 1, part);
      view.strides.insert(view.strides.begin() + static_cast<int64_t>(d) + 1, view.strides[d]);
      view.sizes[d] /= part;
      view.strides[d] *= part;
      return;
    }
  }
  // PyTorch gives a dimension of size 1 any stride.
  void unsqueeze(StridedView& view) {
    const auto at = pick(0, std::ssize(view.sizes));
    view.sizes.insert(view.sizes.begin() + at, 1);
    view.strides.insert(view.strides.begin() + at, pick(0, 20));
  }
  void expand(StridedView& view) {
    const auto at = pick(0, std::ssize(view.sizes));
    view.sizes.insert(view.sizes.begin() + at, pick(1, 3));
    view.strides.insert(view.strides.begin() + at, 0);
  }
  static void remove(StridedView& view, size_t d) {
    view.sizes.erase(view.sizes.begin() + static_cast<int64_t>(d));
    view.strides.erase(view.strides.begin() + static_cast<int64_t>(d));
  }

  std::mt19937 random_;
};

TEST(Strided, ChainsOfViewsReadTheElementsTheyName) {
  ViewMaker maker(1);
  for (int i = 0; i < 30000 && !testing::Test::HasFailure(); ++i) {
    const Dims source = maker.random_dims();
    StridedView view{source, row_major_strides(source), 0};
    for (int64_t n = maker.pick(0, 5); n-- > 0;) maker.apply_random(view);
    check_view(source, view);
  }
}

TEST(Strided, AnyGeometryReadsTheElementsItNames) {
  ViewMaker maker(2);
  for (int i = 0; i < 30000 && !testing::Test::HasFailure(); ++i) {
    const Dims source = maker.random_dims();
    check_view(source, maker.junk(product(source), maker.pick(0, 3) == 0 ? maker.pick(1, 9) : 0));
  }
}

TEST(Strided, WholeTensorIsTheIdentity) {
  for (const Dims& dims : {Dims{}, Dims{1}, Dims{4, 3}, Dims{4, 1, 5}, Dims{0, 3}}) {
    const StridedPlan& plan = plan_for(dims, {dims, row_major_strides(dims), 0});
    EXPECT_TRUE(plan.is_identity) << to_string(dims);
    EXPECT_EQ(plan.num_starts, 0);
  }
}

TEST(Strided, TransposeHasNoStart) {
  const StridedPlan& plan = plan_for({4, 3}, {{3, 4}, {1, 3}, 0});
  EXPECT_EQ(plan.num_starts, 0);
  EXPECT_TRUE(plan.covers_source);
  EXPECT_FALSE(plan.is_identity);
  EXPECT_EQ(plan.permutation, (Dims{1, 0}));
}

TEST(Strided, SliceKeepsTheSourceDimensions) {
  const StridedPlan& plan = plan_for({4, 1, 5}, {{4, 1, 2}, {5, 5, 1}, 3});
  ASSERT_EQ(plan.stages.size(), 1u);
  Dims extents;
  for (const auto& level : plan.stages[0].levels) extents.push_back(level.extent);
  EXPECT_EQ(extents, (Dims{4, 1, 5}));
  EXPECT_EQ(plan.num_starts, 1);
}

TEST(Strided, SelectedIndexIsARunTimeStart) {
  const StridedPlan& first = plan_for({8, 3, 5}, {{8, 5}, {15, 1}, 0});
  for (int64_t i = 0; i < 3; ++i) {
    const StridedPlan& plan = plan_for({8, 3, 5}, {{8, 5}, {15, 1}, 5 * i});
    EXPECT_EQ(&plan, &first);
    int64_t start = -1;
    ASSERT_EQ(plan.num_starts, 1);
    starts(plan, 5 * i, &start);
    EXPECT_EQ(start, i);
  }
}

TEST(Strided, NestedViewsNeverGather) {
  const auto kind = [](const Dims& source, const StridedView& view) { return plan_for(source, view).kind; };
  EXPECT_EQ(kind({6, 6}, {{5}, {7}, 1}), StridedPlan::Kind::kLevels);            // diagonal
  EXPECT_EQ(kind({2, 6, 6}, {{2, 6}, {36, 7}, 0}), StridedPlan::Kind::kLevels);  // batch diagonal
  EXPECT_EQ(kind({4, 10}, {{4, 4}, {10, 3}, 0}), StridedPlan::Kind::kLevels);    // step that does not divide
  EXPECT_EQ(kind({30}, {{2, 3}, {7, 2}, 5}), StridedPlan::Kind::kLevels);        // rows across a block's end
  EXPECT_EQ(kind({10}, {{4, 4}, {2, 1}, 0}), StridedPlan::Kind::kGather);        // overlapping windows
}

}  // namespace
}  // namespace torch_pjrt::lazy
