#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {
namespace {

// Strides that give `dims` the elements of a view with `old_dims` and `old_strides` in the same order; nullopt when no
// strides do. Neither has dimensions of size 0.
std::optional<Dims> reshape_strides(const Dims& old_dims, const Dims& old_strides, const Dims& dims) {
  Dims strides(dims.size());
  auto next = static_cast<int64_t>(dims.size()) - 1;
  int64_t chunk = 1;  // elements of the old dimensions that lie evenly, from the last one on
  int64_t base = old_strides.empty() ? 1 : old_strides.back();
  for (auto i = static_cast<int64_t>(old_dims.size()) - 1; i >= 0; --i) {
    const auto d = static_cast<size_t>(i);
    chunk *= old_dims[d];
    const bool is_even = i > 0 && (old_dims[d - 1] == 1 || old_strides[d - 1] == chunk * base);
    if (is_even) continue;
    int64_t covered = 1;
    while (next >= 0 && (covered < chunk || dims[static_cast<size_t>(next)] == 1)) {
      strides[static_cast<size_t>(next)] = covered * base;
      covered *= dims[static_cast<size_t>(next--)];
    }
    if (covered != chunk) return std::nullopt;
    if (i > 0) {
      chunk = 1;
      base = old_strides[d - 1];
    }
  }
  for (; next >= 0; --next) strides[static_cast<size_t>(next)] = 1;
  return strides;
}

}  // namespace

StridedSource Builder::Impl::source_of(Value x) const {
  if (const auto it = sources.find(id_of(x)); it != sources.end()) return it->second;
  return {x, row_major_strides(x.dims())};
}

void Builder::Impl::note_reshape(Value result, Value x) {
  StridedSource source = source_of(x);
  if (x.numel() == 0) return;
  if (const auto strides = reshape_strides(x.dims(), source.strides, result.dims())) {
    source.strides = *strides;
    sources.emplace(id_of(result), std::move(source));
  }
}

void Builder::Impl::note_transpose(Value result, Value x, const Dims& permutation) {
  StridedSource source = source_of(x);
  source.strides = permuted(source.strides, permutation);
  sources.emplace(id_of(result), std::move(source));
}

void Builder::Impl::note_slice(Value result, Value x, const Dims& starts, const Dims& strides) {
  StridedSource source = source_of(x);
  for (size_t i = 0; i < starts.size(); ++i) {
    source.offset += starts[i] * source.strides[i];
    if (!strides.empty()) source.strides[i] *= strides[i];
  }
  sources.emplace(id_of(result), std::move(source));
}

void Builder::Impl::note_dynamic_slice(Value result, Value x, const Values& starts) {
  StridedSource source = source_of(x);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t limit = x.dims()[i] - result.dims()[i];
    if (limit > 0) source.starts.push_back({starts[i], source.strides[i], limit});
  }
  sources.emplace(id_of(result), std::move(source));
}

StridedSource Builder::source_of(Value x) const { return impl_->source_of(x); }

}  // namespace torch_pjrt::stablehlo
