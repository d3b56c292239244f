#include "ops/registry.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/error.h"

namespace torch_pjrt {
namespace {

// One line for each family that is written.
const std::vector<const OpTable& (*)()>& families() {
  static const std::vector<const OpTable& (*)()> functions = {
      // clang-format off
      strided_ops,
      structural_ops,
      unary_ops,
      binary_ops,
      ternary_ops,
      special_ops,
      cast_ops,
      reduce_ops,
      scan_ops,
      factory_ops,
      foreach_ops,
      optimizer_ops,
      activation_ops,
      activation_backward_ops,
      matmul_ops,
      conv_ops,
      max_pool_ops,
      avg_pool_ops,
      adaptive_pool_ops,
      norm_ops,
      softmax_ops,
      loss_ops,
      class_loss_ops,
      distance_ops,
      embedding_ops,
      shape_ops,
      upsample_ops,
      grid_sampler_ops,
      index_ops,
      scatter_ops,
      sort_ops,
      random_ops,
      // clang-format on
  };
  return functions;
}

std::vector<const OpEntry*> collect() {
  std::vector<const OpEntry*> entries;
  for (const auto family : families()) {
    for (const OpEntry& entry : family()) entries.push_back(&entry);
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

}  // namespace torch_pjrt
