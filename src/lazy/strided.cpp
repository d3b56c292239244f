#include "lazy/strided.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/hash.h"
#include "base/recent_map.h"

namespace torch_pjrt::lazy {

namespace {

using Level = StridedPlan::Level;
using Stage = StridedPlan::Stage;

// `size` elements at distance `stride`.
struct Row {
  int64_t size, stride;
};
using Rows = std::vector<Row>;

// A variant is the shortfall times this plus the position in the family.
constexpr int64_t kMaxForms = 8;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Elements from the first to the last one that these rows touch.
int64_t reach(std::span<const Row> rows) {
  int64_t last = 0;
  for (const Row& row : rows) last += (row.size - 1) * row.stride;
  return last + 1;
}

// Whether, at offset 0, the rows below each level stay inside one of its rows.
bool is_nested(const Rows& rows) {
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].stride >= rows[i - 1].stride) return false;
    if (reach(std::span(rows).subspan(i)) > rows[i - 1].stride) return false;
  }
  return true;
}

// The view's own dimensions by descending stride; fills in what does not depend on the levels.
Rows sort_dimensions(StridedPlan& plan) {
  for (size_t i = 0; i < plan.sizes.size(); ++i) {
    if (plan.sizes[i] == 1) continue;
    if (plan.strides[i] == 0) {
      plan.broadcasts = true;
    } else {
      plan.kept.push_back(static_cast<int64_t>(i));
    }
  }
  Dims order = plan.kept;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return plan.strides[a] > plan.strides[b]; });
  Rows rows;
  for (const int64_t dim : order) {
    rows.push_back({plan.sizes[dim], plan.strides[dim]});
    plan.sorted_sizes.push_back(plan.sizes[dim]);
  }
  for (const int64_t dim : plan.kept) {
    plan.permutation.push_back(std::find(order.begin(), order.end(), dim) - order.begin());
  }
  return rows;
}

// Adds the source's dimensions that the view selects one index of, as far as they divide their neighbours.
Rows with_source_dimensions(const Rows& view_rows, const Dims& source) {
  Rows rows = view_rows;
  const Dims strides = row_major_strides(source);
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == 1) continue;
    const int64_t stride = strides[i];
    const auto below = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.stride <= stride; });
    if (below != rows.end() && (below->stride == stride || stride % below->stride != 0)) continue;
    if (below != rows.begin() && (below - 1)->stride % stride != 0) continue;
    Rows candidate = rows;
    candidate.insert(candidate.begin() + (below - rows.begin()), Row{1, stride});
    if (is_nested(candidate)) rows = std::move(candidate);
  }
  return rows;
}

Rows merge_contiguous(const Rows& rows) {
  Rows merged;
  for (const Row& row : rows) {
    if (!merged.empty() && merged.back().stride == row.size * row.stride) {
      merged.back() = {merged.back().size * row.size, row.stride};
    } else {
      merged.push_back(row);
    }
  }
  return merged;
}

// Gives the first stage the source's dimensions of size 1, so that no reshape is needed when the rest is equal.
void match_source(Stage& stage, const Dims& source) {
  if (stage.length != stage.padded || stage.block != 1) return;
  std::vector<Level> levels;
  size_t next = 0;
  for (const int64_t dim : source) {
    if (dim == 1) {
      levels.push_back({});
    } else if (next < stage.levels.size() && stage.levels[next].extent == dim) {
      levels.push_back(stage.levels[next++]);
    } else {
      return;
    }
  }
  if (next == stage.levels.size()) stage.levels = std::move(levels);
}

// Turns nested rows into stages over `length` elements, padded so that `reachable` of them exist.
void add_stages(StridedPlan& plan, Rows rows, int64_t length, int64_t reachable) {
  if (rows.empty() || rows.back().stride != 1) rows.push_back({1, 1});
  int64_t block = reachable;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto [size, stride] = rows[i];
    const int64_t extent = ceil_div(block, stride);
    const bool is_first = plan.stages.empty();
    if (is_first || extent * stride != block) {
      plan.stages.push_back({.length = is_first ? length : block, .padded = extent * stride, .block = 1, .levels = {}});
    }
    Stage& stage = plan.stages.back();
    stage.block = stride;
    if (i > 0) {
      const int64_t slack = block - reach(std::span(rows).subspan(i));
      plan.bounds.push_back({.stride = rows[i - 1].stride, .slack = slack});
    }
    if (extent != 1) {
      Level level{.extent = extent, .size = size, .stride = stride, .start_index = -1};
      if (size != extent && plan.window == 0) {
        level.start_index = plan.num_starts++;
        plan.start_strides.push_back(stride);
      }
      stage.levels.push_back(level);
    }
    block = stride;
  }
  // A remainder is always below the stride that it is taken by.
  while (!plan.bounds.empty() && plan.bounds.back().slack >= plan.bounds.back().stride - 1) plan.bounds.pop_back();
}

StridedPlan levels_plan(StridedPlan plan, const Rows& rows) {
  plan.kind = StridedPlan::Kind::kLevels;
  const int64_t numel = product(plan.source);
  add_stages(plan, rows, numel, numel + plan.shortfall);
  match_source(plan.stages[0], plan.source);
  bool is_whole = true;
  for (const Stage& stage : plan.stages) {
    is_whole &= stage.length == stage.padded;
    for (const Level& level : stage.levels) is_whole &= level.size == level.extent;
  }
  plan.covers_source = is_whole && !plan.broadcasts;
  plan.is_identity = plan.covers_source && plan.sizes == plan.source &&
                     std::is_sorted(plan.permutation.begin(), plan.permutation.end());
  return plan;
}

StridedPlan window_plan(StridedPlan plan, const Rows& rows) {
  plan.kind = StridedPlan::Kind::kLevels;
  plan.window = reach(rows);
  plan.num_starts = 1;
  add_stages(plan, rows, plan.window, plan.window);
  plan.bounds.clear();
  return plan;
}

using Family = std::vector<StridedPlan>;

Family make_family(const Dims& source, const Dims& sizes, const Dims& strides, int64_t shortfall) {
  StridedPlan base;
  base.source = source;
  base.sizes = sizes;
  base.strides = strides;
  base.shortfall = shortfall;
  Family family;
  const auto add = [&](StridedPlan plan) {
    plan.variant = shortfall * kMaxForms + static_cast<int64_t>(family.size());
    family.push_back(std::move(plan));
  };
  if (product(sizes) == 0) {
    base.is_identity = sizes == source;
    base.covers_source = product(source) == 0;
    add(base);
    return family;
  }
  const Rows rows = sort_dimensions(base);
  if (!is_nested(rows)) {
    base.kind = StridedPlan::Kind::kGather;
    base.num_starts = 1;
    add(base);
    return family;
  }
  if (shortfall == 0) {
    Rows natural = with_source_dimensions(rows, source);
    if (natural.size() != rows.size()) add(levels_plan(base, natural));
  }
  add(levels_plan(base, rows));
  const Rows merged = merge_contiguous(rows);
  if (merged.size() != rows.size()) add(levels_plan(base, merged));
  // Cutting out past the end would need padding first; the forms above then only differ in the amount of it.
  if (!family.back().bounds.empty()) {
    if (shortfall == 0) {
      add(window_plan(base, merged));
    } else {
      base.kind = StridedPlan::Kind::kGather;
      base.num_starts = 1;
      add(base);
    }
  }
  return family;
}

Hash128 family_key(std::span<const int64_t> source, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                   int64_t shortfall) {
  Hash128 hash;
  hash.mix_range(source.begin(), source.end());
  hash.mix_range(sizes.begin(), sizes.end());
  hash.mix_range(strides.begin(), strides.end());
  hash.mix(shortfall);
  return hash;
}

// Each thread has its own, which needs no lock. The references stay good for the next kMaxYoung calls of the thread.
const Family& family_for(std::span<const int64_t> source, std::span<const int64_t> sizes,
                         std::span<const int64_t> strides, int64_t shortfall) {
  constexpr size_t kMaxYoung = 4096;
  thread_local RecentMap<Family> families;
  const Hash128 key = family_key(source, sizes, strides, shortfall);
  if (const Family* found = families.find(key)) return *found;
  if (families.num_young() >= kMaxYoung) families.forget();
  return families.insert(
      key, std::make_unique<Family>(make_family(Dims(source.begin(), source.end()), Dims(sizes.begin(), sizes.end()),
                                                Dims(strides.begin(), strides.end()), shortfall)));
}

}  // namespace

bool StridedPlan::holds_at(int64_t offset) const {
  for (const Bound& bound : bounds) {
    offset %= bound.stride;
    if (offset > bound.slack) return false;
  }
  return true;
}

const StridedPlan& plan_for(std::span<const int64_t> source, std::span<const int64_t> sizes,
                            std::span<const int64_t> strides, int64_t offset) {
  int64_t numel = 1;
  for (const int64_t dim : source) numel *= dim;
  int64_t end = offset + 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) end = 0;
    if (end == 0) break;
    end += (sizes[i] - 1) * strides[i];
  }
  const Family& family = family_for(source, sizes, strides, std::max<int64_t>(end - numel, 0));
  for (const StridedPlan& plan : family) {
    if (plan.holds_at(offset)) return plan;
  }
  TP_CHECK(false, "no plan for sizes ", to_string(family[0].sizes), " strides ", to_string(family[0].strides),
           " offset ", offset);
}

const StridedPlan& plan_variant(const Dims& source, const Dims& sizes, const Dims& strides, int64_t variant) {
  return family_for(source, sizes, strides, variant / kMaxForms).at(static_cast<size_t>(variant % kMaxForms));
}

void starts(const StridedPlan& plan, int64_t offset, int64_t* out) {
  if (plan.kind == StridedPlan::Kind::kGather || plan.window != 0) {
    out[0] = offset;
    return;
  }
  for (const int64_t stride : plan.start_strides) {
    *out++ = offset / stride;
    offset %= stride;
  }
}

}  // namespace torch_pjrt::lazy
