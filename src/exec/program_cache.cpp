#include "exec/program_cache.h"

#include "exec/statistics.h"

namespace torch_pjrt {

const CompiledGraph* ProgramCache::find(const Hash128& key) {
  const auto it = index_.find(key);
  if (it == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return &it->second->second;
}

const CompiledGraph& ProgramCache::insert(const Hash128& key, CompiledGraph graph) {
  size_bytes_ += graph.size_bytes;
  entries_.emplace_front(key, std::move(graph));
  index_[key] = entries_.begin();
  while (entries_.size() > capacity_ || (size_bytes_ > max_bytes_ && entries_.size() > kMinPrograms)) evict(1);
  return entries_.front().second;
}

void ProgramCache::evict(size_t count) {
  static Counter& evicted = counter("EvictedProgram");
  for (size_t i = 0; i < count; ++i) {
    size_bytes_ -= entries_.back().second.size_bytes;
    index_.erase(entries_.back().first);
    entries_.pop_back();
  }
  evicted.add(static_cast<int64_t>(count));
}

void ProgramCache::clear() {
  size_bytes_ = 0;
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
