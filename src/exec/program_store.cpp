#include "exec/program_store.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "base/env.h"
#include "exec/debug_output.h"
#include "exec/disk_cache.h"
#include "exec/runtime.h"
#include "exec/statistics.h"

namespace torch_pjrt {
namespace {

namespace fs = std::filesystem;

// To be raised when equal texts come to mean another program: the meaning of a custom call changed.
constexpr uint64_t kGeneration = 1;

std::optional<fs::path> default_directory() {
  if (const char* path = std::getenv("XLA_PERSISTENT_CACHE_PATH")) {
    const std::string_view text = path;
    if (text.empty() || text == "0") return std::nullopt;
    return fs::path(text);
  }
  if (const auto cache = env_string("XDG_CACHE_HOME")) return fs::path(*cache) / "torch_xla";
  if (const auto home = env_string("HOME")) return fs::path(*home) / ".cache" / "torch_xla";
  return std::nullopt;
}

std::optional<DiskCache> make_cache(const std::optional<fs::path>& directory, bool is_readonly) {
  if (!directory) return std::nullopt;
  constexpr int64_t kMebibyte = 1 << 20;
  const int64_t size = env_int("XLA_PERSISTENT_CACHE_SIZE_MB", 1024);
  TP_USER_CHECK(size > 0, kValueError, "XLA_PERSISTENT_CACHE_SIZE_MB: expected a positive number, got ", size);
  return DiskCache({*directory, is_readonly, size * kMebibyte});
}

std::optional<DiskCache>& cache() {
  static auto* instance =
      new std::optional<DiskCache>(make_cache(default_directory(), env_flag("XLA_PERSISTENT_CACHE_READ_ONLY", false)));
  return *instance;
}

// The first line of each kind that tells processors apart, on x86 and ARM.
std::string processor_description() {
  std::ifstream file("/proc/cpuinfo");
  std::string text;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    for (const char* name : {"model name", "flags", "Features", "CPU implementer", "CPU part"}) {
      if (line.starts_with(name)) text += line + "\n";
    }
  }
  // XLA divides work among the processors when it compiles.
  return concat(text, std::thread::hardware_concurrency(), env_string("NPROC").value_or(""));
}

// What a serialized program depends on beside its text and options; the same in every process.
const Hash128& environment_hash() {
  static const Hash128 hash = [] {
    Runtime& runtime = Runtime::get();
    const std::string& plugin = runtime.client().plugin().library_path();
    Hash128 result;
    result.mix(kGeneration);
    result.mix(std::string_view(runtime.fingerprint()));
    result.mix(std::string_view(plugin));
    std::error_code error;
    const auto size = fs::file_size(plugin, error);
    const auto written = fs::last_write_time(plugin, error);
    if (!error) {
      result.mix(static_cast<uint64_t>(size));
      result.mix(static_cast<int64_t>(written.time_since_epoch().count()));
    }
    result.mix(std::string_view(env_string("XLA_FLAGS").value_or("")));
    if (runtime.is_cpu()) result.mix(std::string_view(processor_description()));
    return result;
  }();
  return hash;
}

Hash128 key_of(const ProgramSpec& spec) {
  Hash128 key = environment_hash();
  key.mix(std::string_view(serialized_options(spec)));
  key.mix(std::string_view(spec.stablehlo));
  return key;
}

void report_once(const std::string& failure) {
  static bool is_reported = false;
  if (!std::exchange(is_reported, true)) print_warning(concat("compiled programs are not kept on disk: ", failure));
}

Ref<Program> load(DiskCache& cache, const Hash128& key, const ProgramSpec& spec) {
  const std::optional<std::string> serialized = cache.load(key);
  if (!serialized) return {};
  try {
    return load_program(spec, *serialized);
  } catch (const Error&) {
    // Whole, but not what this plugin takes: it is compiled again and replaced.
    cache.remove(key);
    return {};
  }
}

void keep(DiskCache& cache, const Hash128& key, const Program& program) {
  try {
    const std::string failure = cache.store(key, program.serialize());
    if (!failure.empty()) report_once(failure);
  } catch (const Error& error) {
    report_once(error.what());
  }
}

}  // namespace

void set_disk_cache(const std::string& directory, bool is_readonly) {
  cache() = make_cache(directory.empty() ? std::nullopt : std::optional(fs::path(directory)), is_readonly);
}

Ref<Program> load_or_compile(ProgramSpec spec) {
  static Counter& hits = counter("PersistentCacheHit");
  static Counter& misses = counter("PersistentCacheMiss");
  std::optional<DiskCache>& disk = cache();
  if (!disk) return compile_program(std::move(spec));
  const Hash128 key = key_of(spec);
  if (Ref<Program> program = load(*disk, key, spec)) {
    hits.add();
    return program;
  }
  misses.add();
  Ref<Program> program = compile_program(std::move(spec));
  if (!disk->options().is_readonly) keep(*disk, key, *program);
  return program;
}

}  // namespace torch_pjrt
