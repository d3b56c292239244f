#include "exec/program_cache.h"

namespace torch_pjrt {

const CompiledGraph* ProgramCache::find(const Hash128& key) {
  const auto it = index_.find(key);
  if (it == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return &it->second->second;
}

const CompiledGraph& ProgramCache::insert(const Hash128& key, CompiledGraph graph) {
  entries_.emplace_front(key, std::move(graph));
  index_[key] = entries_.begin();
  while (entries_.size() > capacity_) {
    index_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return entries_.front().second;
}

void ProgramCache::clear() {
  index_.clear();
  entries_.clear();
}

const CompiledGraph* ProgramCache::find_program(int64_t id) const {
  for (const auto& [key, graph] : entries_) {
    if (graph.program->record().id == id) return &graph;
  }
  return nullptr;
}

}  // namespace torch_pjrt
