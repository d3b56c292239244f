// Compiled graphs by structure hash, least recently used out first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "exec/program.h"

namespace torch_pjrt {

// Without a few programs a loop would compile in each round, whatever they cost.
inline constexpr size_t kMinPrograms = 32;

struct CompiledGraph {
  Ref<Program> program;
  // What the plugin holds for it on the host, estimated.
  int64_t size_bytes = 0;
  // For each pending buffer, in the graph's order, the output that holds its value.
  std::vector<uint32_t> buffer_outputs;
  size_t num_aliased = 0;
  // Whether an operator in it may throw, whatever its arguments' types are.
  bool can_fail = false;
};

// Not thread safe: used under lazy::mutex(). A program that runs when it is dropped ends by itself.
class ProgramCache {
 public:
  explicit ProgramCache(size_t capacity) : capacity_(capacity) {}

  // Of all graphs together, from the next insert on, unless they are kMinPrograms or fewer. At first any size will do.
  void set_max_bytes(int64_t max_bytes) { max_bytes_ = max_bytes; }

  // nullptr when absent. The pointer is good until the next insert or evict.
  const CompiledGraph* find(const Hash128& key);
  const CompiledGraph& insert(const Hash128& key, CompiledGraph graph);
  // By ProgramRecord::id; nullptr when absent.
  const CompiledGraph* find_program(int64_t id) const;
  size_t size() const { return entries_.size(); }
  // Drops the `count` least recently used ones.
  void evict(size_t count);
  void clear();

 private:
  using Entry = std::pair<Hash128, CompiledGraph>;
  const size_t capacity_;
  int64_t max_bytes_ = std::numeric_limits<int64_t>::max();
  int64_t size_bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Hash128, std::list<Entry>::iterator> index_;
};

}  // namespace torch_pjrt
