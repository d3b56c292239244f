#include "torch/overlap.h"

#include <ATen/MemoryOverlap.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <utility>

namespace torch_pjrt {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

bool share_storage(const at::Tensor& a, const at::Tensor& b) {
  const c10::StorageImpl* shared = storage_of(a);
  return shared != nullptr && shared == storage_of(b);
}

// Calls `visit(a, b)` for tensors of the two arguments that lie in one storage.
template <typename Visit>
void visit_pairs(const c10::IValue& a, const c10::IValue& b, const Visit& visit) {
  if (a.isTensor() && b.isTensor()) {
    if (share_storage(a.toTensor(), b.toTensor())) visit(a.toTensor(), b.toTensor());
  } else if (a.isTensor() && b.isList()) {
    for (const c10::IValue& item : b.toListRef()) visit_pairs(a, item, visit);
  } else if (a.isList() && b.isList()) {
    const auto a_items = a.toListRef(), b_items = b.toListRef();
    if (a_items.size() != b_items.size()) return;
    for (size_t i = 0; i < a_items.size(); ++i) visit_pairs(a_items[i], b_items[i], visit);
  }
}

// The same for each written argument and each other argument.
template <typename Visit>
void visit_written(const OpInfo& info, Arguments arguments, const Visit& visit) {
  for (const auto& [written, other] : info.written_pairs) {
    visit_pairs(arguments[written], arguments[other],
                [&](const at::Tensor& a, const at::Tensor& b) { visit(info.arguments[written], a, b); });
  }
}

at::MemOverlapStatus status(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) ? at::MemOverlapStatus::Full : at::get_overlap_status(a, b);
}

template <typename Predicate>
bool has_tensor(const c10::IValue& value, const Predicate& predicate) {
  if (value.isTensor()) return value.toTensor().defined() && predicate(value.toTensor());
  if (!value.isList()) return false;
  const auto items = value.toListRef();
  return std::any_of(items.begin(), items.end(), [&](const c10::IValue& item) { return has_tensor(item, predicate); });
}

// What eager PyTorch calls overlap with itself: it does not look at windows (unfold).
bool is_expanded(const at::Tensor& tensor) { return at::has_internal_overlap(tensor) == at::MemOverlap::Yes; }

// Unless each step of a dimension leads beyond all that the smaller ones reach, which no operator but as_strided makes.
bool shares_elements(const at::Tensor& tensor) {
  if (tensor.numel() < 2 || tensor.is_non_overlapping_and_dense()) return false;
  c10::SmallVector<std::pair<int64_t, int64_t>, 5> dims;  // stride and size
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) > 1) dims.emplace_back(tensor.stride(i), tensor.size(i));
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

}  // namespace

void mix_overlaps(const OpInfo& info, Arguments arguments, Hash128& hash) {
  visit_written(info, arguments, [&](const ArgumentRule&, const at::Tensor& a, const at::Tensor& b) {
    hash.mix(static_cast<uint64_t>(status(a, b)) << 8 | 13);
  });
}

bool writes_shared_elements(const OpInfo& info, Arguments arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentRule& rule = info.arguments[i];
    // One number for all (fill_), or numbers drawn for each: any of them will do.
    if (rule.is_mutated && !rule.is_unread && has_tensor(arguments[i], shares_elements)) return true;
  }
  return false;
}

bool may_overlap(const OpInfo& info, Arguments arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i].is_mutated && has_tensor(arguments[i], is_expanded)) return true;
  }
  bool found = false;
  visit_written(info, arguments, [&](const ArgumentRule& rule, const at::Tensor& a, const at::Tensor& b) {
    // An out= tensor may grow.
    found = found || rule.is_out || status(a, b) == at::MemOverlapStatus::Full ||
            status(a, b) == at::MemOverlapStatus::Partial;
  });
  return found;
}

}  // namespace torch_pjrt
