// Keeping the order that a kernel outside of XLA stores its results in.
//
// A custom call that gives [N, H, W, C] for a result [N, C, H, W] is followed by a transpose. XLA would carry it out in
// the first elementwise operation and keep the new order from there on, up to the next such call, which transposes
// back. So elementwise operations, reductions, slices and pads whose operand is such a transpose are emitted in the
// stored order, and the transpose comes after them; where nobody needs it, XLA drops it.
#include <algorithm>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {
const StoredOrder* Builder::Impl::find_stored(Value x) const {
  const auto it = stored.find(id_of(x));
  return it == stored.end() ? nullptr : &it->second;
}

// A broadcast is done again, into the stored dimensions, where the dimensions that it spreads keep their order.
std::optional<Value> Builder::Impl::broadcast_in_order(Builder& b, Value x, const Dims& to_stored) const {
  const auto it = broadcasts.find(id_of(x));
  if (it == broadcasts.end()) return std::nullopt;
  const auto& [source, dims] = it->second;
  const Dims position = inverse_permutation(to_stored);
  Dims kept_sizes, kept_dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (source.dims()[i] == 1) continue;
    kept_sizes.push_back(source.dims()[i]);
    kept_dims.push_back(position[static_cast<size_t>(dims[i])]);
  }
  if (!std::is_sorted(kept_dims.begin(), kept_dims.end())) return std::nullopt;
  return b.broadcast_in_dim(b.reshape(source, kept_sizes), permuted(x.dims(), to_stored), kept_dims);
}

std::optional<Value> Builder::Impl::in_stored_order(Builder& b, const Values& operands,
                                                    const std::function<Value(const Values&)>& emit) {
  if (stored.empty()) return std::nullopt;
  const auto ordered =
      std::find_if(operands.begin(), operands.end(), [&](Value x) { return find_stored(x) != nullptr; });
  if (ordered == operands.end()) return std::nullopt;
  const Dims permutation = find_stored(*ordered)->permutation;
  const Dims to_stored = inverse_permutation(permutation);
  Values moved;
  for (const Value& x : operands) {
    const StoredOrder* own = find_stored(x);
    if (x.rank() == 0) {
      moved.push_back(x);
    } else if (own != nullptr && own->permutation == permutation) {
      moved.push_back(own->value);
    } else if (const auto broadcast = broadcast_in_order(b, x, to_stored)) {
      moved.push_back(*broadcast);
    } else {
      moved.push_back(b.transpose(x, to_stored));
    }
  }
  return in_order_of(b, *ordered, emit(moved));
}

std::optional<Value> Builder::Impl::in_stored_order(Builder& b, Value x,
                                                    const std::function<Value(Value, const Dims& to_stored)>& emit) {
  const StoredOrder* order = find_stored(x);
  if (order == nullptr) return std::nullopt;
  return in_order_of(b, x, emit(order->value, inverse_permutation(order->permutation)));
}

Value Builder::Impl::in_order_of(Builder& b, Value x, Value value) {
  const StoredOrder* order = find_stored(x);
  if (order == nullptr) return value;
  const Dims permutation = order->permutation;
  const Value result = b.transpose(value, permutation);
  stored.emplace(id_of(result), StoredOrder{value, permutation});
  return result;
}

std::optional<std::pair<Value, Dims>> Builder::Impl::reduction_in_stored_order(Value x, const Dims& dims) const {
  const StoredOrder* order = find_stored(x);
  if (order == nullptr) return std::nullopt;
  const Dims to_stored = inverse_permutation(order->permutation);
  Dims reduced, kept;
  for (size_t i = 0; i < to_stored.size(); ++i) {
    const bool is_reduced = std::find(dims.begin(), dims.end(), to_stored[i]) != dims.end();
    if (is_reduced) {
      reduced.push_back(static_cast<int64_t>(i));
    } else {
      kept.push_back(to_stored[i]);
    }
  }
  if (!std::is_sorted(kept.begin(), kept.end())) return std::nullopt;
  return std::pair(order->value, reduced);
}

}  // namespace torch_pjrt::stablehlo
