#include "torch/overlap.h"

#include <ATen/MemoryOverlap.h>

namespace torch_pjrt {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

bool share_storage(const at::Tensor& a, const at::Tensor& b) {
  const auto storage = [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
  };
  const auto* shared = storage(a);
  return shared != nullptr && shared == storage(b);
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
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!info.arguments[i].is_mutated) continue;
    for (size_t j = 0; j < arguments.size(); ++j) {
      const bool holds_tensors = info.arguments[j].kind == ArgumentRule::Kind::kTensor ||
                                 info.arguments[j].kind == ArgumentRule::Kind::kTensorList;
      if (j == i || !holds_tensors) continue;
      visit_pairs(arguments[i], arguments[j],
                  [&](const at::Tensor& a, const at::Tensor& b) { visit(info.arguments[i], a, b); });
    }
  }
}

at::MemOverlapStatus status(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) ? at::MemOverlapStatus::Full : at::get_overlap_status(a, b);
}

bool overlaps_itself(const c10::IValue& value) {
  if (value.isTensor())
    return value.toTensor().defined() && at::has_internal_overlap(value.toTensor()) == at::MemOverlap::Yes;
  if (!value.isList()) return false;
  for (const c10::IValue& item : value.toListRef()) {
    if (overlaps_itself(item)) return true;
  }
  return false;
}

}  // namespace

void mix_overlaps(const OpInfo& info, Arguments arguments, Hash128& hash) {
  visit_written(info, arguments, [&](const ArgumentRule&, const at::Tensor& a, const at::Tensor& b) {
    hash.mix(static_cast<uint64_t>(status(a, b)) << 8 | 13);
  });
}

bool may_overlap(const OpInfo& info, Arguments arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i].is_mutated && overlaps_itself(arguments[i])) return true;
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
