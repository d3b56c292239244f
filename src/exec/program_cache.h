// Compiled graphs by structure hash, least recently used out first.
#pragma once

#include <cstddef>
#include <list>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "exec/program.h"

namespace torch_pjrt {

struct CompiledGraph {
  Ref<Program> program;
  // For each pending buffer, in the graph's order, the output that holds its value.
  std::vector<uint32_t> buffer_outputs;
  size_t num_aliased = 0;
  // Whether an operator in it may throw, whatever its arguments' types are.
  bool can_fail = false;
};

// Not thread safe: used under lazy::mutex().
class ProgramCache {
 public:
  explicit ProgramCache(size_t capacity) : capacity_(capacity) {}

  // nullptr when absent. The pointer is good until the next insert.
  const CompiledGraph* find(const Hash128& key);
  const CompiledGraph& insert(const Hash128& key, CompiledGraph graph);
  // By ProgramRecord::id; nullptr when absent.
  const CompiledGraph* find_program(int64_t id) const;
  size_t size() const { return entries_.size(); }
  void clear();

 private:
  using Entry = std::pair<Hash128, CompiledGraph>;
  size_t capacity_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Hash128, std::list<Entry>::iterator> index_;
};

}  // namespace torch_pjrt
