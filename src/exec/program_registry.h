// What is known of the programs that this process compiled or loaded, kept after the programs themselves are gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ref.h"

namespace torch_pjrt {

// Written while the program is made; afterwards only `runs` changes. Bytes are of one device.
struct ProgramRecord : RefCounted {
  int64_t id = 0;             // 0, 1, 2, ... in the order of compilation
  std::string name;           // of the module
  std::string cause;          // what made the graph be cut, and where that is known: ".item(), at train@train.py:31"
  std::string explanation;    // why no earlier program served; see exec/explain.h
  std::string largest_value;  // for errors about memory; see exec/explain.h
  double compile_seconds = 0;
  bool from_disk_cache = false;
  int64_t num_nodes = 0;
  int64_t num_parameters = 0;
  int64_t num_outputs = 0;
  int64_t argument_bytes = 0;
  int64_t output_bytes = 0;
  int64_t temp_bytes = 0;
  int64_t alias_bytes = 0;
  int64_t generated_code_bytes = 0;
  std::atomic<int64_t> runs{0};
};

// `error` of a run, with the program in its message.
Error explain(const Error& error, const ProgramRecord& record);

// Assigns the id. Thread safe, as is the list.
void add_program_record(const Ref<ProgramRecord>& record);
// The newest ones, oldest first.
inline constexpr size_t kMaxProgramRecords = 65536;
std::vector<Ref<ProgramRecord>> list_program_records();

}  // namespace torch_pjrt
