#include "pjrt/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>

namespace torch_pjrt::pjrt {
namespace {

// The oldest PJRT API that this build talks to; the header's major version is the only one there has been.
constexpr int kOldestMinorVersion = 54;

const PJRT_Api* open_table(const std::string& path) {
  TP_USER_CHECK(std::filesystem::is_regular_file(path), kNotFound, "PJRT plugin ", path, ": no such file");
  // RTLD_LOCAL: two plugins carry two copies of XLA, whose symbols must not mix.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw_error(ErrorCode::kFailedPrecondition, "PJRT plugin ", path,
                ": cannot be loaded: ", reason == nullptr ? "unknown reason" : reason);
  }
  auto* get_api = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  TP_USER_CHECK(get_api != nullptr, kFailedPrecondition, "PJRT plugin ", path,
                ": is a shared library but no PJRT plugin: it does not define GetPjrtApi");
  const PJRT_Api* table = get_api();
  TP_USER_CHECK(table != nullptr, kFailedPrecondition, "PJRT plugin ", path, ": GetPjrtApi returned null");
  return table;
}

void check_version(const PJRT_Api* table, const std::string& path) {
  const PJRT_Api_Version& version = table->pjrt_api_version;
  TP_USER_CHECK(version.major_version == PJRT_API_MAJOR, kFailedPrecondition, "PJRT plugin ", path,
                ": it speaks PJRT API ", version.major_version, ".", version.minor_version, ", and only major version ",
                PJRT_API_MAJOR, " is supported");
  TP_USER_CHECK(version.minor_version >= kOldestMinorVersion, kFailedPrecondition, "PJRT plugin ", path,
                ": it is too old: it speaks PJRT API ", version.major_version, ".", version.minor_version,
                ", and the oldest supported is ", PJRT_API_MAJOR, ".", kOldestMinorVersion);
}

}  // namespace

const Plugin& Plugin::load(const std::string& library_path) {
  // Leaked: a plugin's threads may still run while static objects are destroyed.
  static auto& loaded = *new std::map<std::string, std::unique_ptr<Plugin>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Plugin>& plugin = loaded[library_path];
  if (plugin == nullptr) plugin.reset(new Plugin(library_path));
  return *plugin;
}

Plugin::Plugin(std::string library_path) : library_path_(std::move(library_path)), api_(nullptr) {
  const PJRT_Api* table = open_table(library_path_);
  check_version(table, library_path_);
  api_ = Api(table);
  PJRT_Plugin_Initialize_Args initialize{};
  api_.call(TP_PJRT(PJRT_Plugin_Initialize), initialize);
  if (api_.has(TP_PJRT(PJRT_Plugin_Attributes))) {
    PJRT_Plugin_Attributes_Args args{};
    api_.call(TP_PJRT(PJRT_Plugin_Attributes), args);
    attributes_ = from_pjrt(args.attributes, args.num_attributes);
  }
}

std::optional<NamedValue> Plugin::attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace torch_pjrt::pjrt
