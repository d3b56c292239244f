#include "torch/memo.h"

#include <algorithm>

#include "base/env.h"
#include "exec/kept_runs.h"
#include "lazy/graph.h"

namespace torch_pjrt {
namespace {

size_t max_young() {
  static const auto limit = static_cast<size_t>(std::max<int64_t>(env_int("XLA_MEMO_SIZE", 8192), 1));
  return limit;
}

// Also what may have to be computed again.
bool is_anything_pending() {
  release_kept_runs();
  if (has_kept_runs()) return true;
  for (const lazy::Graph* graph : lazy::Graph::all()) {
    if (graph->num_pending() > 0) return true;
  }
  return false;
}

}  // namespace

std::vector<MemoBase*>& MemoBase::all() {
  static auto* memos = new std::vector<MemoBase*>();
  return *memos;
}

size_t MemoBase::num_entries() {
  size_t count = 0;
  for (const MemoBase* memo : all()) count += memo->size();
  return count;
}

void MemoBase::note_size(size_t num_young) { any_is_full_ = any_is_full_ || num_young >= max_young(); }

void MemoBase::forget_full_ones() {
  if (is_anything_pending()) return;
  for (MemoBase* memo : all()) {
    if (memo->num_young() >= max_young()) memo->forget();
  }
  any_is_full_ = false;
}

}  // namespace torch_pjrt
