#include <algorithm>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {
namespace {

bool contains(const Dims& dims, int64_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

Dims joined(const Dims& a, const Dims& b) {
  Dims all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

void check_sorted(std::string_view op, std::string_view name, const Dims& dims) {
  TP_USER_CHECK(std::is_sorted(dims.begin(), dims.end()), kInvalidArgument, op, ": ", name,
                " must be sorted: ", to_string(dims));
}

// The index tensor's half of a gather or scatter, whose rules both share.
struct IndexDims {
  std::string_view op;
  const Value& operand;
  const Value& indices;
  const Dims& operand_batching_dims;
  const Dims& indices_batching_dims;
  const Dims& index_map;  // index component -> operand dimension
  int64_t index_vector_dim;

  void check() const {
    TP_USER_CHECK(is_integral(indices.dtype()), kInvalidArgument, op,
                  ": indices must be integers: ", indices.type().hlo());
    TP_USER_CHECK(index_vector_dim >= 0 && index_vector_dim <= indices.rank(), kInvalidArgument, op,
                  ": index_vector_dim must be in [0, rank]: ", index_vector_dim, " of ", indices.type().hlo());
    const int64_t components = index_vector_dim < indices.rank() ? indices.dim(index_vector_dim) : 1;
    TP_USER_CHECK(static_cast<int64_t>(index_map.size()) == components, kInvalidArgument, op,
                  ": one operand dimension for each index component: ", to_string(index_map), " for ", components);
    check_dims(op, "index map and batching dimensions", joined(index_map, operand_batching_dims), operand.rank());
    check_dims(op, "indices' batching dimensions", indices_batching_dims, indices.rank());
    check_sorted(op, "operand batching dimensions", operand_batching_dims);
    bool agrees = operand_batching_dims.size() == indices_batching_dims.size() &&
                  !contains(indices_batching_dims, index_vector_dim);
    for (size_t i = 0; agrees && i < operand_batching_dims.size(); ++i) {
      agrees = operand.dim(operand_batching_dims[i]) == indices.dim(indices_batching_dims[i]);
    }
    TP_USER_CHECK(agrees, kInvalidArgument, op, ": batching dimensions must agree: ", to_string(operand_batching_dims),
                  " of ", operand.type().hlo(), " and ", to_string(indices_batching_dims), " of ",
                  indices.type().hlo());
  }

  // The indices' sizes without the index vector.
  Dims batch_sizes() const {
    Dims sizes = indices.dims();
    if (index_vector_dim < indices.rank()) sizes.erase(sizes.begin() + index_vector_dim);
    return sizes;
  }
};

// Places `window` sizes at `window_dims` of the result and `batch` sizes, in order, at the others.
Dims interleaved(const Dims& batch, const Dims& window, const Dims& window_dims) {
  Dims sizes;
  size_t next_batch = 0;
  size_t next_window = 0;
  for (size_t i = 0; i < batch.size() + window.size(); ++i) {
    const bool is_window = contains(window_dims, static_cast<int64_t>(i));
    sizes.push_back(is_window ? window[next_window++] : batch[next_batch++]);
  }
  return sizes;
}

}  // namespace

Value Builder::gather(Value operand, Value start_indices, const GatherDims& dims, const Dims& slice_sizes) {
  static constexpr std::string_view kOp = "stablehlo.gather";
  const IndexDims index{kOp,
                        operand,
                        start_indices,
                        dims.operand_batching_dims,
                        dims.start_indices_batching_dims,
                        dims.start_index_map,
                        dims.index_vector_dim};
  index.check();
  const Dims dropped = joined(dims.collapsed_slice_dims, dims.operand_batching_dims);
  check_dims(kOp, "collapsed and batching dimensions", dropped, operand.rank());
  check_sorted(kOp, "collapsed_slice_dims", dims.collapsed_slice_dims);
  check_sorted(kOp, "offset_dims", dims.offset_dims);
  bool fits = static_cast<int64_t>(slice_sizes.size()) == operand.rank();
  for (size_t i = 0; fits && i < slice_sizes.size(); ++i) {
    const bool is_dropped = contains(dropped, static_cast<int64_t>(i));
    fits = slice_sizes[i] >= 0 && slice_sizes[i] <= operand.dims()[i] && (!is_dropped || slice_sizes[i] <= 1);
  }
  TP_USER_CHECK(fits, kInvalidArgument, kOp,
                ": slice sizes must fit the operand, and be 1 where dropped: ", to_string(slice_sizes), " of ",
                operand.type().hlo(), ", dropped ", to_string(dropped));
  Dims window;
  for (size_t i = 0; i < slice_sizes.size(); ++i) {
    if (!contains(dropped, static_cast<int64_t>(i))) window.push_back(slice_sizes[i]);
  }
  const Dims batch = index.batch_sizes();
  TP_USER_CHECK(window.size() == dims.offset_dims.size(), kInvalidArgument, kOp,
                ": one offset dimension for each kept dimension: ", to_string(dims.offset_dims), " for ",
                to_string(window));
  check_dims(kOp, "offset_dims", dims.offset_dims, static_cast<int64_t>(batch.size() + window.size()));

  const Value result = impl_->new_result(impl_->intern(operand.dtype(), interleaved(batch, window, dims.offset_dims)));
  Impl& out = impl_->begin(result) << "\"stablehlo.gather\"(" << operand << ", " << start_indices
                                   << ") <{dimension_numbers = #stablehlo.gather<";
  out.dims_field("offset_dims", dims.offset_dims)
      .dims_field("collapsed_slice_dims", dims.collapsed_slice_dims)
      .dims_field("operand_batching_dims", dims.operand_batching_dims)
      .dims_field("start_indices_batching_dims", dims.start_indices_batching_dims)
      .dims_field("start_index_map", dims.start_index_map);
  out << "index_vector_dim = " << dims.index_vector_dim << ">, indices_are_sorted = " << dims.indices_are_sorted
      << ", ";
  out.i64_array("slice_sizes", slice_sizes) << "}>";
  out.end({operand, start_indices}, {result});
  return result;
}

namespace {

void check_scatter(const Values& operands, const Value& indices, const Values& updates, const ScatterDims& dims) {
  static constexpr std::string_view kOp = "stablehlo.scatter";
  TP_USER_CHECK(!operands.empty() && operands.size() == updates.size(), kInvalidArgument, kOp,
                ": one update for each operand: ", updates.size(), " for ", operands.size());
  const Value& operand = operands[0];
  const Value& update = updates[0];
  for (size_t i = 0; i < operands.size(); ++i) {
    TP_USER_CHECK(operands[i].dims() == operand.dims() && updates[i].dims() == update.dims() &&
                      operands[i].dtype() == updates[i].dtype(),
                  kInvalidArgument, kOp,
                  ": operands and updates must agree in dims, and each pair in dtype: ", operands[i].type().hlo(),
                  " and ", updates[i].type().hlo());
  }
  const IndexDims index{kOp,
                        operand,
                        indices,
                        dims.input_batching_dims,
                        dims.scatter_indices_batching_dims,
                        dims.scatter_dims_to_operand_dims,
                        dims.index_vector_dim};
  index.check();
  const Dims dropped = joined(dims.inserted_window_dims, dims.input_batching_dims);
  check_dims(kOp, "inserted and batching dimensions", dropped, operand.rank());
  check_dims(kOp, "update_window_dims", dims.update_window_dims, update.rank());
  check_sorted(kOp, "inserted_window_dims", dims.inserted_window_dims);
  check_sorted(kOp, "update_window_dims", dims.update_window_dims);

  const Dims batch = index.batch_sizes();
  Dims limits;
  for (int64_t i = 0; i < operand.rank(); ++i) {
    if (!contains(dropped, i)) limits.push_back(operand.dim(i));
  }
  bool fits = limits.size() == dims.update_window_dims.size() &&
              update.rank() == static_cast<int64_t>(batch.size() + limits.size());
  if (fits) {
    const Dims largest = interleaved(batch, limits, dims.update_window_dims);
    for (int64_t i = 0; i < update.rank(); ++i) {
      const int64_t size = largest[static_cast<size_t>(i)];
      fits = fits && (contains(dims.update_window_dims, i) ? update.dim(i) <= size : update.dim(i) == size);
    }
  }
  TP_USER_CHECK(fits, kInvalidArgument, kOp, ": the update must consist of the indices' sizes ", to_string(batch),
                " and of windows within ", to_string(limits), ": ", update.type().hlo(), ", window dimensions ",
                to_string(dims.update_window_dims));
}

}  // namespace

Values Builder::scatter(const Values& operands, Value indices, const Values& updates, const ScatterDims& dims,
                        const Region& update) {
  check_scatter(operands, indices, updates, dims);
  std::vector<const InternedType*> scalars;
  Values results;
  for (const Value& operand : operands) {
    scalars.push_back(impl_->intern(operand.dtype(), {}));
    results.push_back(impl_->new_result(Impl::type_of(operand)));
  }
  Values inputs = operands;
  inputs.push_back(indices);
  inputs.insert(inputs.end(), updates.begin(), updates.end());
  Impl& out = impl_->begin(results) << "\"stablehlo.scatter\"(" << inputs
                                    << ") <{indices_are_sorted = " << dims.indices_are_sorted
                                    << ", scatter_dimension_numbers = #stablehlo.scatter<";
  out.dims_field("update_window_dims", dims.update_window_dims)
      .dims_field("inserted_window_dims", dims.inserted_window_dims)
      .dims_field("input_batching_dims", dims.input_batching_dims)
      .dims_field("scatter_indices_batching_dims", dims.scatter_indices_batching_dims)
      .dims_field("scatter_dims_to_operand_dims", dims.scatter_dims_to_operand_dims);
  out << "index_vector_dim = " << dims.index_vector_dim << ">, unique_indices = " << dims.unique_indices << "}> (";
  std::vector<const InternedType*> arguments = scalars;
  arguments.insert(arguments.end(), scalars.begin(), scalars.end());
  const Values yielded = out.region(arguments, update, Capture::kForbidden, "stablehlo.scatter");
  Impl::check_yields("stablehlo.scatter", yielded, scalars);
  out << ')';
  out.end(inputs, results);
  return results;
}

}  // namespace torch_pjrt::stablehlo
