#include "ops/registry.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"

namespace torch_pjrt {
namespace {

struct Family {
  const OpTable& (*table)();
  bool takes_any_sizes = false;
};

// One line for each family that is written.
const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      // clang-format off
      {strided_ops},
      {structural_ops},
      {unary_ops, true},
      {binary_ops, true},
      {ternary_ops, true},
      {special_ops, true},
      {cast_ops},
      {reduce_ops, true},
      {scan_ops, true},
      {factory_ops},
      {foreach_ops, true},
      {optimizer_ops},
      {activation_ops, true},
      {activation_backward_ops, true},
      {matmul_ops, true},
      {conv_ops},
      {attention_ops},
      {max_pool_ops},
      {avg_pool_ops},
      {adaptive_pool_ops},
      {norm_ops},
      {softmax_ops, true},
      {loss_ops, true},
      {class_loss_ops},
      {distance_ops},
      {fft_ops},
      {linalg_ops},
      {lu_ops},
      {embedding_ops},
      {shape_ops},
      {upsample_ops},
      {grid_sampler_ops},
      {index_ops},
      {scatter_ops},
      {sort_ops, true},
      {random_ops},
      {rnn_ops},
      {ctc_loss_ops},
      {fractional_pool_ops},
      {histogram_ops},
      {orthogonal_ops},
      {eigen_ops},
      // clang-format on
  };
  return all;
}

std::vector<const OpEntry*> collect() {
  std::vector<const OpEntry*> entries;
  for (const Family& family : families()) {
    for (const OpEntry& entry : family.table()) entries.push_back(&entry);
  }
  std::sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  const auto twice = std::adjacent_find(entries.begin(), entries.end(),
                                        [](const auto* a, const auto* b) { return a->name == b->name; });
  TP_CHECK(twice == entries.end(), "operator in two lowering tables: ", (*twice)->name);
  return entries;
}

}  // namespace

const std::vector<const OpEntry*>& all_ops() {
  static const std::vector<const OpEntry*> entries = collect();
  return entries;
}

const OpEntry* find_op(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const OpEntry*> map;
    for (const OpEntry* entry : all_ops()) map.emplace(entry->name, entry);
    return map;
  }();
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

bool takes_any_sizes(const OpEntry& entry) {
  static const auto names = [] {
    std::unordered_set<std::string_view> set;
    for (const Family& family : families()) {
      if (!family.takes_any_sizes) continue;
      for (const OpEntry& op : family.table()) set.insert(op.name);
    }
    return set;
  }();
  return names.contains(entry.name);
}

}  // namespace torch_pjrt
