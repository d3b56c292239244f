#include <algorithm>
#include <numeric>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {

Value Builder::reshape(Value x, const Dims& dims) {
  if (x.dims() == dims) return x;
  TP_USER_CHECK(product(dims) == x.numel(), kInvalidArgument,
                "stablehlo.reshape: the number of elements must stay: ", x.type().hlo(), " to ", to_string(dims));
  const Value result = impl_->unary("stablehlo.reshape", x, impl_->intern(x.dtype(), dims));
  impl_->note_reshape(result, x);
  return result;
}

Value Builder::transpose(Value x, const Dims& permutation) {
  TP_USER_CHECK(static_cast<int64_t>(permutation.size()) == x.rank(), kInvalidArgument,
                "stablehlo.transpose: one entry for each dimension: ", to_string(permutation), " for ", x.type().hlo());
  check_dims("stablehlo.transpose", "permutation", permutation, x.rank());
  if (std::is_sorted(permutation.begin(), permutation.end())) return x;
  if (const auto joined = impl_->concatenation_in_order(*this, x, permutation)) return *joined;
  const Dims dims = permuted(x.dims(), permutation);
  const Value result = impl_->new_result(impl_->intern(x.dtype(), dims));
  impl_->begin(result) << "stablehlo.transpose " << x << ", dims = [" << permutation << ']';
  impl_->end(x, result);
  impl_->note_transpose(result, x, permutation);
  if (impl_->call_results.contains(Impl::id_of(x)))
    impl_->stored.emplace(Impl::id_of(result), StoredOrder{x, permutation});
  return result;
}

Value Builder::broadcast_in_dim(Value x, const Dims& dims, const Dims& broadcast_dimensions) {
  const auto rank = static_cast<int64_t>(dims.size());
  TP_USER_CHECK(static_cast<int64_t>(broadcast_dimensions.size()) == x.rank(), kInvalidArgument,
                "stablehlo.broadcast_in_dim: one entry for each operand dimension: ", to_string(broadcast_dimensions),
                " for ", x.type().hlo());
  check_dims("stablehlo.broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions, rank);
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t size = dims[static_cast<size_t>(broadcast_dimensions[static_cast<size_t>(i)])];
    TP_USER_CHECK(x.dim(i) == 1 || x.dim(i) == size, kInvalidArgument,
                  "stablehlo.broadcast_in_dim: a dimension must be 1 or keep its size: ", x.type().hlo(), " to ",
                  to_string(dims), " along ", to_string(broadcast_dimensions));
  }
  if (x.dims() == dims && std::is_sorted(broadcast_dimensions.begin(), broadcast_dimensions.end())) return x;

  const InternedType* type = impl_->intern(x.dtype(), dims);
  const SplatKey key{Impl::id_of(x), type};
  if (x.rank() == 0) {
    const auto it = impl_->scope().splats.find(key);
    if (it != impl_->scope().splats.end()) return it->second;
  }
  const Value result = impl_->new_result(type);
  impl_->begin(result) << "stablehlo.broadcast_in_dim " << x << ", dims = [" << broadcast_dimensions << ']';
  impl_->end(x, result);
  if (x.rank() == 0) impl_->scope().splats.emplace(key, result);
  impl_->broadcasts.emplace(Impl::id_of(result), std::pair(x, broadcast_dimensions));
  return result;
}

Value Builder::broadcast_to(Value x, const Dims& dims) {
  const int64_t missing = static_cast<int64_t>(dims.size()) - x.rank();
  TP_USER_CHECK(missing >= 0, kInvalidArgument, "stablehlo.broadcast_in_dim: too few dimensions: ", x.type().hlo(),
                " to ", to_string(dims));
  Dims broadcast_dimensions(static_cast<size_t>(x.rank()));
  std::iota(broadcast_dimensions.begin(), broadcast_dimensions.end(), missing);
  return broadcast_in_dim(x, dims, broadcast_dimensions);
}

std::pair<Value, Value> Builder::broadcast_pair(Value a, Value b) {
  if (a.dims() == b.dims()) return {a, b};
  const Dims& longer = a.rank() >= b.rank() ? a.dims() : b.dims();
  const Dims& shorter = a.rank() >= b.rank() ? b.dims() : a.dims();
  Dims dims = longer;
  const size_t missing = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& size = dims[missing + i];
    if (size == 1) size = shorter[i];
    TP_USER_CHECK(shorter[i] == 1 || shorter[i] == size, kInvalidArgument, "The size of tensor a (",
                  a.dim(a.rank() - static_cast<int64_t>(shorter.size() - i)), ") must match the size of tensor b (",
                  b.dim(b.rank() - static_cast<int64_t>(shorter.size() - i)), ") at non-singleton dimension ",
                  missing + i);
  }
  return {broadcast_to(a, dims), broadcast_to(b, dims)};
}

Value Builder::slice(Value x, const Dims& starts, const Dims& limits, const Dims& strides) {
  const auto rank = static_cast<size_t>(x.rank());
  TP_USER_CHECK(starts.size() == rank && limits.size() == rank && (strides.empty() || strides.size() == rank),
                kInvalidArgument,
                "stablehlo.slice: one start, limit and stride for each dimension: ", to_string(starts), ", ",
                to_string(limits), ", ", to_string(strides), " for ", x.type().hlo());
  Dims dims(rank);
  bool is_identity = true;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t stride = strides.empty() ? 1 : strides[i];
    const int64_t size = x.dims()[i];
    TP_USER_CHECK(0 <= starts[i] && starts[i] <= limits[i] && limits[i] <= size && stride > 0, kInvalidArgument,
                  "stablehlo.slice: needs 0 <= start <= limit <= size and stride > 0: ", starts[i], ':', limits[i], ':',
                  stride, " in dimension ", i, " of ", x.type().hlo());
    dims[i] = (limits[i] - starts[i] + stride - 1) / stride;
    is_identity = is_identity && dims[i] == size;
  }
  if (is_identity) return x;
  const auto again = [&](Value stored, const Dims& to_stored) {
    return slice(stored, permuted(starts, to_stored), permuted(limits, to_stored),
                 strides.empty() ? strides : permuted(strides, to_stored));
  };
  if (const auto stored = impl_->in_stored_order(*this, x, again)) return *stored;
  const Value result = impl_->new_result(impl_->intern(x.dtype(), dims));
  Impl& out = impl_->begin(result) << "stablehlo.slice " << x << " [";
  for (size_t i = 0; i < rank; ++i) {
    if (i > 0) out << ", ";
    out << starts[i] << ':' << limits[i];
    if (!strides.empty() && strides[i] != 1) out << ':' << strides[i];
  }
  out << ']';
  out.end(x, result);
  out.note_slice(result, x, starts, strides);
  return result;
}

Value Builder::slice_dim(Value x, int64_t dim, int64_t start, int64_t limit, int64_t stride) {
  TP_USER_CHECK(dim >= 0 && dim < x.rank(), kInvalidArgument, "stablehlo.slice: no dimension ", dim, " in ",
                x.type().hlo());
  const auto d = static_cast<size_t>(dim);
  Dims starts(static_cast<size_t>(x.rank()), 0);
  Dims limits = x.dims();
  Dims strides(static_cast<size_t>(x.rank()), 1);
  starts[d] = start;
  limits[d] = limit;
  strides[d] = stride;
  return slice(x, starts, limits, strides);
}

namespace {

void check_starts(std::string_view op, const Value& x, const Values& starts) {
  TP_USER_CHECK(static_cast<int64_t>(starts.size()) == x.rank(), kInvalidArgument, op,
                ": one start for each dimension: ", starts.size(), " for ", x.type().hlo());
  for (const Value& start : starts) {
    TP_USER_CHECK(start.rank() == 0 && is_integral(start.dtype()) && start.dtype() == starts[0].dtype(),
                  kInvalidArgument, op, ": starts must be scalars of one integer type: ", start.type().hlo());
  }
}

}  // namespace

Value Builder::dynamic_slice(Value x, const Values& starts, const Dims& sizes) {
  check_starts("stablehlo.dynamic_slice", x, starts);
  bool fits = static_cast<int64_t>(sizes.size()) == x.rank();
  for (size_t i = 0; fits && i < sizes.size(); ++i) fits = 0 <= sizes[i] && sizes[i] <= x.dims()[i];
  TP_USER_CHECK(fits, kInvalidArgument, "stablehlo.dynamic_slice: sizes must fit the operand: ", to_string(sizes),
                " in ", x.type().hlo());
  if (x.dims() == sizes) return x;  // starts clamp to zero
  const Value result = impl_->new_result(impl_->intern(x.dtype(), sizes));
  Values operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  impl_->begin(result) << "stablehlo.dynamic_slice " << operands << ", sizes = [" << sizes << ']';
  impl_->end(operands, {result});
  impl_->note_dynamic_slice(result, x, starts);
  return result;
}

Value Builder::dynamic_update_slice(Value x, Value update, const Values& starts) {
  check_starts("stablehlo.dynamic_update_slice", x, starts);
  bool fits = update.dtype() == x.dtype() && update.rank() == x.rank();
  for (int64_t i = 0; fits && i < x.rank(); ++i) fits = update.dim(i) <= x.dim(i);
  TP_USER_CHECK(fits, kInvalidArgument,
                "stablehlo.dynamic_update_slice: the update must fit the operand: ", update.type().hlo(), " in ",
                x.type().hlo());
  if (update.dims() == x.dims()) return update;
  if (update.numel() == 0) return x;
  const Value result = impl_->new_result(Impl::type_of(x));
  Values operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  impl_->begin(result) << "stablehlo.dynamic_update_slice " << operands;
  impl_->end(operands, {result});
  return result;
}

Value Builder::pad(Value x, Value value, const Dims& low, const Dims& high, const Dims& interior) {
  const auto rank = static_cast<size_t>(x.rank());
  TP_USER_CHECK(low.size() == rank && high.size() == rank && (interior.empty() || interior.size() == rank),
                kInvalidArgument, "stablehlo.pad: one low, high and interior for each dimension: ", to_string(low),
                ", ", to_string(high), ", ", to_string(interior), " for ", x.type().hlo());
  TP_USER_CHECK(value.rank() == 0 && value.dtype() == x.dtype(), kInvalidArgument,
                "stablehlo.pad: the padding value must be a scalar of the operand's dtype: ", value.type().hlo(),
                " for ", x.type().hlo());
  Dims dims(rank);
  const Dims interior_or_zeros = interior.empty() ? Dims(rank, 0) : interior;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = x.dims()[i];
    dims[i] = low[i] + size + std::max<int64_t>(size - 1, 0) * interior_or_zeros[i] + high[i];
    TP_USER_CHECK(dims[i] >= 0 && interior_or_zeros[i] >= 0, kInvalidArgument,
                  "stablehlo.pad: interior and the result's size must not be negative: low ", to_string(low), ", high ",
                  to_string(high), ", interior ", to_string(interior_or_zeros), " for ", x.type().hlo());
  }
  const auto is_zero = [](int64_t n) { return n == 0; };
  if (std::all_of(low.begin(), low.end(), is_zero) && dims == x.dims()) return x;
  const auto again = [&](Value stored, const Dims& to_stored) {
    return pad(stored, value, permuted(low, to_stored), permuted(high, to_stored),
               permuted(interior_or_zeros, to_stored));
  };
  if (const auto stored = impl_->in_stored_order(*this, x, again)) return *stored;
  const Value result = impl_->new_result(impl_->intern(x.dtype(), dims));
  impl_->begin(result) << "stablehlo.pad " << x << ", " << value << ", low = [" << low << "], high = [" << high
                       << "], interior = [" << interior_or_zeros << ']';
  impl_->end({x, value}, {result});
  return result;
}

Value Builder::repeat(Value x, const Dims& counts) {
  if (std::all_of(counts.begin(), counts.end(), [](int64_t count) { return count == 1; })) return x;
  const auto again = [&](Value stored, const Dims& to_stored) { return repeat(stored, permuted(counts, to_stored)); };
  if (const auto stored = impl_->in_stored_order(*this, x, again)) return *stored;
  Dims split, positions, merged;
  for (size_t i = 0; i < counts.size(); ++i) {
    positions.push_back(static_cast<int64_t>(split.size()));
    split.push_back(x.dims()[i]);
    if (counts[i] != 1) split.push_back(counts[i]);
    merged.push_back(x.dims()[i] * counts[i]);
  }
  return reshape(broadcast_in_dim(x, split, positions), merged);
}

Value Builder::concatenate(const Values& xs, int64_t dim) {
  TP_USER_CHECK(!xs.empty(), kInvalidArgument, "stablehlo.concatenate: needs an operand");
  TP_USER_CHECK(dim >= 0 && dim < xs[0].rank(), kInvalidArgument, "stablehlo.concatenate: no dimension ", dim, " in ",
                xs[0].type().hlo());
  Dims dims = xs[0].dims();
  int64_t& size = dims[static_cast<size_t>(dim)];
  for (size_t i = 1; i < xs.size(); ++i) {
    bool fits = xs[i].dtype() == xs[0].dtype() && xs[i].rank() == xs[0].rank();
    for (int64_t d = 0; fits && d < xs[0].rank(); ++d) fits = d == dim || xs[i].dim(d) == xs[0].dim(d);
    TP_USER_CHECK(fits, kInvalidArgument, "stablehlo.concatenate: types must agree outside dimension ", dim, ": ",
                  xs[0].type().hlo(), " and ", xs[i].type().hlo());
    size += xs[i].dim(dim);
  }
  if (xs.size() == 1) return xs[0];
  const Value result = impl_->new_result(impl_->intern(xs[0].dtype(), dims));
  impl_->begin(result) << "stablehlo.concatenate " << xs << ", dim = " << dim;
  impl_->end(xs, {result});
  impl_->concatenations.emplace(Impl::id_of(result), std::pair(xs, dim));
  return result;
}

// The gradients of heads that were taken apart by a permutation are such: XLA would copy them twice.
std::optional<Value> Builder::Impl::concatenation_in_order(Builder& b, Value x, const Dims& permutation) const {
  const auto it = concatenations.find(id_of(x));
  if (it == concatenations.end()) return std::nullopt;
  const auto& [operands, dim] = it->second;
  Values parts;
  for (const Value& operand : operands) {
    const StridedSource source = source_of(operand);
    const Dims dims = permuted(operand.dims(), permutation);
    const bool is_whole = source.starts.empty() && source.base.numel() == operand.numel();
    if (!is_whole || !is_row_major(dims, permuted(source.strides, permutation))) return std::nullopt;
    parts.push_back(b.reshape(source.base, dims));
  }
  return b.concatenate(parts, inverse_permutation(permutation)[static_cast<size_t>(dim)]);
}

Value Builder::reverse(Value x, const Dims& dims) {
  check_dims("stablehlo.reverse", "dims", dims, x.rank());
  const auto is_trivial = [&](int64_t dim) { return x.dim(dim) <= 1; };
  if (std::all_of(dims.begin(), dims.end(), is_trivial)) return x;
  const Value result = impl_->new_result(Impl::type_of(x));
  impl_->begin(result) << "stablehlo.reverse " << x << ", dims = [" << dims << ']';
  impl_->end(result);
  return result;
}

Value Builder::unsqueeze(Value x, int64_t dim) {
  TP_USER_CHECK(dim >= 0 && dim <= x.rank(), kInvalidArgument, "stablehlo.reshape: no place for dimension ", dim,
                " in ", x.type().hlo());
  Dims dims = x.dims();
  dims.insert(dims.begin() + dim, 1);
  return reshape(x, dims);
}

Value Builder::squeeze(Value x, int64_t dim) {
  TP_USER_CHECK(dim >= 0 && dim < x.rank() && x.dim(dim) == 1, kInvalidArgument, "stablehlo.reshape: dimension ", dim,
                " must have size 1: ", x.type().hlo());
  Dims dims = x.dims();
  dims.erase(dims.begin() + dim);
  return reshape(x, dims);
}

}  // namespace torch_pjrt::stablehlo
