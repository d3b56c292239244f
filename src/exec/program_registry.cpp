#include "exec/program_registry.h"

#include <deque>
#include <mutex>

#include "exec/host_calls.h"

namespace torch_pjrt {
namespace {

struct Records {
  std::mutex mutex;
  std::deque<Ref<ProgramRecord>> list;
  int64_t next_id = 0;
};

Records& records() {
  static auto& instance = *new Records;
  return instance;
}

}  // namespace

Error explain(const Error& error, const ProgramRecord& record) {
  std::string place = concat("program ", record.id, " '", record.name, "'");
  if (!record.cause.empty()) place += ", cut by " + record.cause;
  if (error.code() == ErrorCode::kOutOfMemory && !record.largest_value.empty()) {
    place += ", whose largest value is " + record.largest_value;
  }
  const Error raised = from_plugin_message(error);
  return Error(raised.code(), concat(raised.what(), " (in ", place, ")"));
}

void add_program_record(const Ref<ProgramRecord>& record) {
  const std::lock_guard lock(records().mutex);
  record->id = records().next_id++;
  records().list.push_back(record);
  if (records().list.size() > kMaxProgramRecords) records().list.pop_front();
}

std::vector<Ref<ProgramRecord>> list_program_records() {
  const std::lock_guard lock(records().mutex);
  return {records().list.begin(), records().list.end()};
}

}  // namespace torch_pjrt
