#include "exec/program_registry.h"

#include <mutex>

namespace torch_pjrt {
namespace {

struct Records {
  std::mutex mutex;
  std::vector<Ref<ProgramRecord>> list;
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
  return Error(error.code(), concat(error.what(), " (in ", place, ")"));
}

void add_program_record(const Ref<ProgramRecord>& record) {
  const std::lock_guard lock(records().mutex);
  record->id = static_cast<int64_t>(records().list.size());
  records().list.push_back(record);
}

std::vector<Ref<ProgramRecord>> list_program_records() {
  const std::lock_guard lock(records().mutex);
  return records().list;
}

}  // namespace torch_pjrt
