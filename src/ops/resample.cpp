#include "ops/resample.h"

#include <algorithm>

#include "base/error.h"
#include "ops/indexing.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

namespace {

// More slices than this cost more than one gather.
constexpr size_t kMaxRuns = 8;
// More taps than this become one gather and a reduction instead of a sum of gathers.
constexpr size_t kMaxSummands = 8;

using Row = std::vector<Tap>;

size_t most_taps(const Taps& taps) {
  size_t most = 0;
  for (const Row& row : taps.rows()) most = std::max(most, row.size());
  return most;
}

bool is_unweighted(const Taps& taps) {
  return std::all_of(taps.rows().begin(), taps.rows().end(), [](const Row& row) {
    return std::all_of(row.begin(), row.end(), [](const Tap& tap) { return tap.weight == 1.0; });
  });
}

// Row i is exactly {i / factor}: each element repeated. 0 when it is not so.
int64_t repeat_factor(const Taps& taps) {
  if (taps.input_size() == 0 || taps.output_size() % taps.input_size() != 0 || !is_unweighted(taps)) return 0;
  const int64_t factor = taps.output_size() / taps.input_size();
  for (int64_t i = 0; i < taps.output_size(); ++i) {
    const Row& row = taps.rows()[i];
    if (row.size() != 1 || row[0].index != i / factor) return 0;
  }
  return factor;
}

Dims with_size(Dims dims, int64_t dim, int64_t size) {
  dims[dim] = size;
  return dims;
}

Value repeat_elements(Builder& b, Value x, int64_t dim, int64_t factor) {
  Dims split = x.dims();
  split.insert(split.begin() + dim + 1, factor);
  return b.reshape(b.broadcast_to(b.unsqueeze(x, dim + 1), split), with_size(x.dims(), dim, x.dim(dim) * factor));
}

Value sum_groups(Builder& b, Value x, int64_t dim, int64_t factor) {
  Dims split = with_size(x.dims(), dim, x.dim(dim) / factor);
  split.insert(split.begin() + dim + 1, factor);
  return b.reduce(Reduction::kAdd, b.reshape(x, split), {dim + 1});
}

// Elements first, first + step, ... of the input for `count` outputs; step is -1, 0 or 1.
struct Run {
  int64_t first, step, count;
};

std::vector<Run> find_runs(const Taps& taps) {
  std::vector<Run> runs;
  for (const Row& row : taps.rows()) {
    const int64_t index = row[0].index;
    if (!runs.empty()) {
      Run& run = runs.back();
      const int64_t step = index - (run.first + run.step * (run.count - 1));
      if (run.count == 1 && step >= -1 && step <= 1) run.step = step;
      if (step == run.step && (run.count > 1 || (step >= -1 && step <= 1))) {
        ++run.count;
        continue;
      }
    }
    runs.push_back({index, 1, 1});
  }
  return runs;
}

Value take_run(Builder& b, Value x, int64_t dim, const Run& run) {
  if (run.step == 0) {
    return b.broadcast_to(b.slice_dim(x, dim, run.first, run.first + 1), with_size(x.dims(), dim, run.count));
  }
  if (run.step > 0) return b.slice_dim(x, dim, run.first, run.first + run.count);
  return b.reverse(b.slice_dim(x, dim, run.first - run.count + 1, run.first + 1), {dim});
}

// Tap `k` of each row, or a tap of weight 0.
Tap tap_or_none(const Row& row, size_t k) { return k < row.size() ? row[k] : Tap{0, 0.0}; }

Value weighted(Builder& b, Value taken, const std::vector<double>& weights, const Dims& sizes, const Dims& dims) {
  if (std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 1.0; })) return taken;
  const Value factors = b.dense(weights, {taken.dtype(), sizes});
  return b.multiply(taken, b.broadcast_in_dim(factors, taken.dims(), dims));
}

Value sum_of_gathers(Builder& b, Value x, int64_t dim, const Taps& taps, size_t most) {
  const int64_t size = taps.output_size();
  Value sum;
  for (size_t k = 0; k < most; ++k) {
    std::vector<int64_t> indices;
    std::vector<double> weights;
    for (const Row& row : taps.rows()) {
      const Tap tap = tap_or_none(row, k);
      indices.push_back(tap.index);
      weights.push_back(tap.weight);
    }
    const Value taken = take_rows(b, x, dim, b.dense(indices, {DType::kS32, {size}}));
    const Value term = weighted(b, taken, weights, {size}, {dim});
    sum = sum ? b.add(sum, term) : term;
  }
  return sum;
}

Value gather_and_reduce(Builder& b, Value x, int64_t dim, const Taps& taps, size_t most) {
  const auto count = static_cast<int64_t>(most);
  std::vector<int64_t> indices;
  std::vector<double> weights;
  for (const Row& row : taps.rows()) {
    for (size_t k = 0; k < most; ++k) {
      const Tap tap = tap_or_none(row, k);
      indices.push_back(tap.index);
      weights.push_back(tap.weight);
    }
  }
  const Dims table = {taps.output_size(), count};
  const Value taken = take_rows(b, x, dim, b.dense(indices, {DType::kS32, table}));
  return b.reduce(Reduction::kAdd, weighted(b, taken, weights, table, {dim, dim + 1}), {dim + 1});
}

}  // namespace

Taps Taps::transposed() const {
  Taps result(output_size());
  result.rows_.resize(static_cast<size_t>(input_size_));
  for (int64_t i = 0; i < output_size(); ++i) {
    for (const Tap& tap : rows_[i]) result.rows_[tap.index].push_back({i, tap.weight});
  }
  return result;
}

Value resample(Builder& b, Value x, int64_t dim, const Taps& taps) {
  TP_CHECK(x.dim(dim) == taps.input_size(), "taps for ", taps.input_size(), " elements of ", x.dim(dim));
  const Dims result = with_size(x.dims(), dim, taps.output_size());
  const size_t most = most_taps(taps);
  if (product(result) == 0 || most == 0) return b.splat(0.0, x.type().with_dims(result));
  if (const int64_t factor = repeat_factor(taps)) return repeat_elements(b, x, dim, factor);
  if (const int64_t factor = repeat_factor(taps.transposed())) return sum_groups(b, x, dim, factor);
  const bool is_selection =
      std::all_of(taps.rows().begin(), taps.rows().end(), [](const Row& row) { return row.size() == 1; });
  if (is_selection && is_unweighted(taps)) {
    const std::vector<Run> runs = find_runs(taps);
    if (runs.size() <= kMaxRuns) {
      Values parts;
      for (const Run& run : runs) parts.push_back(take_run(b, x, dim, run));
      return b.concatenate(parts, dim);
    }
  }
  return most <= kMaxSummands ? sum_of_gathers(b, x, dim, taps, most) : gather_and_reduce(b, x, dim, taps, most);
}

}  // namespace torch_pjrt
