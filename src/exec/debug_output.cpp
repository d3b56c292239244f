#include "exec/debug_output.h"

#include <cstdio>
#include <string>

#include "base/env.h"
#include "base/error.h"

namespace torch_pjrt {
namespace {

bool is_wanted() {
  static const bool is_asked = env_flag("PT_XLA_DEBUG", false);
  return is_asked;
}

// One call, so that lines of several threads do not mix.
void print_line(const std::string& line) { std::fputs(("torch_xla: " + line + "\n").c_str(), stderr); }

}  // namespace

void print_cut(std::string_view cause, size_t num_nodes) {
  if (!is_wanted()) return;
  print_line(concat("cut by ", cause, ": ", num_nodes, num_nodes == 1 ? " operator" : " operators"));
}

void print_compile(const ProgramRecord& record) {
  if (!is_wanted()) return;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f", record.compile_seconds);
  const char* const action = record.from_disk_cache ? "loaded program " : "compiled program ";
  print_line(concat(action, record.id, " in ", seconds, " s: ", record.explanation));
}

void print_warning(const std::string& warning) { print_line("warning: " + warning); }

}  // namespace torch_pjrt
