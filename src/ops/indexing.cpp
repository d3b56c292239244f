#include "ops/indexing.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "ops/host_kernel.h"
#include "ops/scan.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::GatherDims;
using stablehlo::Reduction;
using stablehlo::Region;
using stablehlo::ScatterDims;
using stablehlo::Value;
using stablehlo::Values;

namespace {

Dims range(int64_t first, int64_t last) {
  Dims dims(static_cast<size_t>(std::max<int64_t>(last - first, 0)));
  std::iota(dims.begin(), dims.end(), first);
  return dims;
}

Dims with_last(Dims dims, int64_t last) {
  dims.push_back(last);
  return dims;
}

Value zeros(Builder& b, Value like, const Dims& dims) { return b.splat(0.0, like.type().with_dims(dims)); }

}  // namespace

int64_t wrap_dim(int64_t dim, int64_t rank) {
  const int64_t span = std::max<int64_t>(rank, 1);
  TP_CHECK(dim >= -span && dim < span, "dimension ", dim, " of a tensor of ", rank);
  return dim < 0 ? dim + span : dim;
}

DType index_dtype(int64_t size) { return size <= std::numeric_limits<int32_t>::max() ? DType::kS32 : DType::kS64; }

Expr narrow_index(const Expr& index, int64_t size) { return index.convert(index_dtype(size)); }

Expr wrapped_index(const Expr& index, int64_t size) {
  const Expr narrow = narrow_index(index, size);
  return select(narrow < 0.0, narrow + static_cast<double>(size), narrow);
}

Expr positions(Builder& b, const Dims& dims, int64_t dim) { return {b, b.iota({index_dtype(dims[dim]), dims}, dim)}; }

void check_indices(Builder& b, const Dims& x_dims, const std::vector<std::optional<Value>>& indices) {
  int64_t number = 0;  // of the index tensor: eager PyTorch calls it the dimension
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    const int64_t size = x_dims[i];
    check_range(b, *indices[i], -size, size, RangeError::of_dimension(ErrorCode::kIndexError, number++, size));
  }
}

void check_flat_index(Builder& b, Value index, int64_t numel) {
  const RangeError error{ErrorCode::kIndexError, "out of range: tried to access index ",
                         concat(" on a tensor of ", numel, " elements.")};
  check_range(b, index, -numel, numel, error);
}

Region replace_update() {
  return [](const Values& arguments) { return Values{arguments[1]}; };
}

namespace {

constexpr std::string_view mnemonic(Reduction reduction) {
  switch (reduction) {
    case Reduction::kAdd:
      return "stablehlo.add";
    case Reduction::kMul:
      return "stablehlo.multiply";
    case Reduction::kMax:
      return "stablehlo.maximum";
    case Reduction::kMin:
      return "stablehlo.minimum";
    case Reduction::kAnd:
      return "stablehlo.and";
    case Reduction::kOr:
      return "stablehlo.or";
  }
  return "";
}

}  // namespace

Region combine_update(Builder& b, Reduction reduction) {
  return [&b, reduction](const Values& arguments) {
    return Values{b.binary(mnemonic(reduction), arguments[0], arguments[1])};
  };
}

Value take_rows(Builder& b, Value x, int64_t dim, Value index) {
  Dims result(x.dims().begin(), x.dims().begin() + dim);
  result.insert(result.end(), index.dims().begin(), index.dims().end());
  result.insert(result.end(), x.dims().begin() + dim + 1, x.dims().end());
  if (product(result) == 0) return zeros(b, x, result);
  GatherDims dims;
  dims.offset_dims = range(0, dim);
  const Dims after = range(dim + index.rank(), static_cast<int64_t>(result.size()));
  dims.offset_dims.insert(dims.offset_dims.end(), after.begin(), after.end());
  dims.collapsed_slice_dims = {dim};
  dims.start_index_map = {dim};
  dims.index_vector_dim = index.rank();
  Dims slice_sizes = x.dims();
  slice_sizes[dim] = 1;
  const Expr narrow = narrow_index({b, index}, x.dim(dim));
  return b.gather(x, b.reshape(narrow, with_last(index.dims(), 1)), dims, slice_sizes);
}

namespace {

// The leading part of `x` that an index tensor of `sizes` reaches along the dimensions other than `dim`.
Dims reached(Value x, int64_t dim, const Dims& sizes) {
  Dims dims = sizes;
  dims[dim] = x.dim(dim);
  return dims;
}

Dims all_but(int64_t rank, int64_t dim) {
  Dims dims = range(0, rank);
  dims.erase(dims.begin() + dim);
  return dims;
}

}  // namespace

Value gather_along(Builder& b, Value x, int64_t dim, Value index) {
  if (index.numel() == 0) return zeros(b, x, index.dims());
  if (x.rank() == 0) return x;
  const Dims part = reached(x, dim, index.dims());
  x = b.slice(x, Dims(part.size(), 0), part);
  GatherDims dims;
  dims.collapsed_slice_dims = {dim};
  dims.operand_batching_dims = dims.start_indices_batching_dims = all_but(x.rank(), dim);
  dims.start_index_map = {dim};
  dims.index_vector_dim = index.rank();
  const Expr narrow = narrow_index({b, index}, x.dim(dim));
  return b.gather(x, b.reshape(narrow, with_last(index.dims(), 1)), dims, Dims(x.dims().size(), 1));
}

Value scatter_rows(Builder& b, Value x, int64_t dim, Value index, Value update, const Region& combine) {
  if (update.numel() == 0) return x;
  ScatterDims dims;
  dims.update_window_dims = all_but(x.rank(), dim);
  dims.inserted_window_dims = {dim};
  dims.scatter_dims_to_operand_dims = {dim};
  dims.index_vector_dim = 1;
  const Expr narrow = narrow_index({b, index}, x.dim(dim));
  return b.scatter({x}, b.reshape(narrow, {index.numel(), 1}), {update}, dims, combine)[0];
}

Value scatter_along(Builder& b, Value x, int64_t dim, Value index, Value update, const Region& combine) {
  if (index.numel() == 0) return x;
  if (x.rank() == 0) {
    return b.reshape(scatter_along(b, b.reshape(x, {1}), 0, b.reshape(index, {1}), b.reshape(update, {1}), combine),
                     {});
  }
  const Dims part_dims = reached(x, dim, index.dims());
  const Value part = b.slice(x, Dims(part_dims.size(), 0), part_dims);
  ScatterDims dims;
  dims.inserted_window_dims = {dim};
  dims.input_batching_dims = dims.scatter_indices_batching_dims = all_but(x.rank(), dim);
  dims.scatter_dims_to_operand_dims = {dim};
  dims.index_vector_dim = index.rank();
  const Expr narrow = narrow_index({b, index}, x.dim(dim));
  const Value result = b.scatter({part}, b.reshape(narrow, with_last(index.dims(), 1)), {update}, dims, combine)[0];
  if (part_dims == x.dims()) return result;
  return b.dynamic_update_slice(x, result, Values(x.dims().size(), b.constant(0, DType::kS32)));
}

namespace {

// PyTorch's rule; the sizes are known to agree.
Dims broadcast_dims(const Dims& a, const Dims& b) {
  Dims result(std::max(a.size(), b.size()), 1);
  for (const Dims* dims : {&a, &b}) {
    const size_t skipped = result.size() - dims->size();
    for (size_t i = 0; i < dims->size(); ++i) {
      if ((*dims)[i] != 1) result[skipped + i] = (*dims)[i];
    }
  }
  return result;
}

}  // namespace

AdvancedIndex::AdvancedIndex(Builder& b, const Dims& x_dims, const std::vector<std::optional<Value>>& indices)
    : b_(b), x_dims_(x_dims) {
  Dims batch;
  int64_t largest = 1;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    indexed_dims_.push_back(static_cast<int64_t>(i));
    batch = broadcast_dims(batch, indices[i]->dims());
    largest = std::max(largest, x_dims[i]);
  }
  Values components;
  for (const int64_t dim : indexed_dims_) {
    const Expr index = wrapped_index({b, *indices[dim]}, x_dims[dim]).convert(index_dtype(largest));
    components.push_back(b.reshape(b.broadcast_to(index, batch), with_last(batch, 1)));
  }
  index_ = components.size() == 1 ? components[0] : b.concatenate(components, static_cast<int64_t>(batch.size()));

  // Index tensors of neighbouring dimensions stay in their place, others come first.
  const bool is_adjacent = indexed_dims_.back() - indexed_dims_.front() + 1 == std::ssize(indexed_dims_);
  const int64_t batch_at = is_adjacent ? indexed_dims_.front() : 0;
  for (int64_t dim = 0; dim < std::ssize(x_dims); ++dim) {
    if (std::ssize(result_dims_) == batch_at) result_dims_.insert(result_dims_.end(), batch.begin(), batch.end());
    if (std::find(indexed_dims_.begin(), indexed_dims_.end(), dim) != indexed_dims_.end()) continue;
    window_dims_.push_back(std::ssize(result_dims_));
    result_dims_.push_back(x_dims[dim]);
  }
}

Value AdvancedIndex::read(Value x) const {
  if (product(result_dims_) == 0) return zeros(b_, x, result_dims_);
  GatherDims dims;
  dims.offset_dims = window_dims_;
  dims.collapsed_slice_dims = indexed_dims_;
  dims.start_index_map = indexed_dims_;
  dims.index_vector_dim = index_.rank() - 1;
  Dims slice_sizes = x_dims_;
  for (const int64_t dim : indexed_dims_) slice_sizes[dim] = 1;
  return b_.gather(x, index_, dims, slice_sizes);
}

Value AdvancedIndex::write(Value x, Value update, const Region& combine) const {
  if (update.numel() == 0) return x;
  ScatterDims dims;
  dims.update_window_dims = window_dims_;
  dims.inserted_window_dims = indexed_dims_;
  dims.scatter_dims_to_operand_dims = indexed_dims_;
  dims.index_vector_dim = index_.rank() - 1;
  return b_.scatter({x}, index_, {update}, dims, combine)[0];
}

Value scan(Builder& b, Reduction reduction, Value x, int64_t dim) {
  return scan(b, {x}, {b.identity(reduction, x.dtype())}, dim, combine_update(b, reduction))[0];
}

Expr ranks_of_set(Builder& b, Value mask) {
  const Expr ones(b, b.convert(mask, index_dtype(mask.numel())));
  return Expr(b, scan(b, Reduction::kAdd, ones, 0)) - ones;
}

void check_count_set(Builder& b, Value mask, int64_t low, int64_t high, const RangeError& error) {
  if (!host_kernels_on()) return;
  check_range(b, b.reduce(Reduction::kAdd, b.convert(mask, DType::kS64), range(0, mask.rank())), low, high, error);
}

namespace {

// Whether the search goes on above `at`: ATen's lower_bound and upper_bound, which put NaN last.
Expr is_below(const Expr& at, const Expr& value, bool right) { return right ? ~(at > value) : ~(at >= value); }

}  // namespace

Expr binary_search(const Expr& sequence, std::optional<Expr> sorter, int64_t n, const Expr& row_starts,
                   const Expr& values, bool right) {
  Builder& b = sequence.builder();
  const Value flat = b.reshape(sequence, {sequence.value().numel()});
  const DType dtype = index_dtype(sequence.value().numel() + n);
  const Value zero = b.splat(0, {dtype, values.dims()});
  const Value size = b.splat(static_cast<double>(n), {dtype, values.dims()});
  const auto steps = static_cast<double>(std::bit_width(static_cast<uint64_t>(n)));
  const auto condition = [&](const Values& state) { return Values{Expr(b, state[0]) < steps}; };
  // A loop: unrolled and fused with what follows, XLA's compiler looks through each step twice, 2^steps times in all.
  const Values found = b.while_loop({b.constant(0, DType::kS32), zero, size}, condition, [&](const Values& state) {
    const Expr start(b, state[1]), end(b, state[2]);
    const Expr middle = start + (end - start) / 2.0;
    Expr at = middle;
    if (sorter) {
      const Value sorted = take_rows(b, b.reshape(*sorter, {sorter->value().numel()}), 0, row_starts + middle);
      at = Expr(b, sorted).convert(dtype);
    }
    const Expr probed(b, take_rows(b, flat, 0, row_starts + at));
    const Expr goes_up = is_below(probed, values, right) & (start < end);
    const Expr stays = ~goes_up & (start < end);
    return Values{Expr(b, state[0]) + 1.0, select(goes_up, middle + 1.0, start), select(stays, middle, end)};
  });
  return {b, found[1]};
}

}  // namespace torch_pjrt
