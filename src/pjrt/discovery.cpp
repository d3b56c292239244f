#include "pjrt/discovery.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/env.h"
#include "base/error.h"

namespace torch_pjrt::pjrt {
namespace {

struct Registered {
  std::mutex mutex;
  std::vector<PluginCandidate> candidates;
};

Registered& registered() {
  static auto& instance = *new Registered;
  return instance;
}

// Packages that ship a plugin, for programs without Python: paths below the directory that Python packages lie in.
constexpr std::pair<const char*, const char*> kKnownPackages[] = {
    {"cuda", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"},
    {"cuda", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"},
    {"tpu", "libtpu/libtpu.so"},
    {"cpu", "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"},
    {"cpu", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
};

// An installed library of ours is <packages>/torch_xla/lib/libtorch_pjrt.so.
std::vector<PluginCandidate> candidates_beside_this_library() {
  std::vector<PluginCandidate> candidates;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&register_plugin_path), &info) == 0) return candidates;
  std::error_code ignored;
  const auto library = std::filesystem::weakly_canonical(info.dli_fname, ignored);
  const auto packages = library.parent_path().parent_path().parent_path();
  for (const auto& [name, path] : kKnownPackages) {
    if (std::filesystem::exists(packages / path, ignored)) candidates.push_back({name, packages / path});
  }
  return candidates;
}

std::vector<PluginCandidate> all_candidates() {
  std::vector<PluginCandidate> candidates;
  {
    const std::lock_guard lock(registered().mutex);
    candidates = registered().candidates;
  }
  if (candidates.empty()) candidates = candidates_beside_this_library();
#ifdef TORCH_PJRT_DEFAULT_PLUGIN_PATH
  if (std::filesystem::exists(TORCH_PJRT_DEFAULT_PLUGIN_PATH)) {
    candidates.push_back({"cpu", TORCH_PJRT_DEFAULT_PLUGIN_PATH});
  }
#endif
  return candidates;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// "xla_cuda12" and "cuda12" answer to CUDA and GPU, "xla_rocm7" to ROCM and GPU; any plugin answers to its own name.
bool answers_to(const PluginCandidate& candidate, const std::string& device) {
  std::string name = lower(candidate.name);
  const std::string wanted = lower(device);
  if (name == wanted) return true;
  if (name.starts_with("xla_")) name.erase(0, 4);
  if (wanted == "gpu") return name.starts_with("cuda") || name.starts_with("rocm") || name == "gpu";
  if (wanted == "cuda" || wanted == "rocm") return name.starts_with(wanted);
  return name == wanted;
}

std::string install_hint(const std::string& device) {
  const std::string wanted = lower(device);
  std::string package = "lammps-jax-pjrt-cpu";
  if (wanted == "cuda" || wanted == "gpu") package = "jax-cuda12-plugin";
  if (wanted == "rocm") package = "jax-rocm7-plugin";
  if (wanted == "tpu") package = "libtpu";
  return concat("Install one, for example with `pip install ", package,
                "`, or set PJRT_PLUGIN_LIBRARY_PATH to the plugin's shared library.");
}

[[noreturn]] void throw_not_found(const std::vector<PluginCandidate>& candidates, const std::string& device) {
  std::string seen;
  for (const PluginCandidate& candidate : candidates) {
    seen += concat(seen.empty() ? "" : ", ", candidate.name, " (", candidate.library_path, ")");
  }
  throw_error(ErrorCode::kNotFound, "no PJRT plugin found: PJRT_PLUGIN_LIBRARY_PATH is not set, PJRT_DEVICE is ",
              device.empty() ? "not set" : device, ", and ",
              seen.empty() ? "no installed package registers a plugin" : "the installed plugins are " + seen, ". ",
              install_hint(device));
}

}  // namespace

void register_plugin_path(const std::string& name, const std::string& library_path) {
  const std::lock_guard lock(registered().mutex);
  const PluginCandidate candidate{name, library_path};
  auto& candidates = registered().candidates;
  if (std::find(candidates.begin(), candidates.end(), candidate) == candidates.end()) candidates.push_back(candidate);
}

std::vector<PluginCandidate> find_plugins() {
  const std::string device = env_string("PJRT_DEVICE").value_or("");
  if (const auto path = env_string("PJRT_PLUGIN_LIBRARY_PATH")) {
    const std::string name = device.empty() ? std::filesystem::path(*path).filename().string() : lower(device);
    return {{name, *path}};
  }
  const std::vector<PluginCandidate> all = all_candidates();
  std::vector<PluginCandidate> chosen = all;
  if (!device.empty()) {
    std::erase_if(chosen, [&](const PluginCandidate& candidate) { return !answers_to(candidate, device); });
  } else {
    std::stable_partition(chosen.begin(), chosen.end(),
                          [](const PluginCandidate& candidate) { return !is_cpu(candidate); });
  }
  if (chosen.empty()) throw_not_found(all, device);
  return chosen;
}

bool is_cpu(const PluginCandidate& candidate) {
  const std::string name = lower(candidate.name);
  return name == "cpu" || name.find("cpu_") != std::string::npos || name.find("_cpu") != std::string::npos;
}

}  // namespace torch_pjrt::pjrt
