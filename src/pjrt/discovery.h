// Which plugin to use: environment variables, then the libraries that were registered.
#pragma once

#include <string>
#include <vector>

namespace torch_pjrt::pjrt {

struct PluginCandidate {
  std::string name;          // "cpu", "cuda", "tpu", or what the package calls it
  std::string library_path;  // of the shared library
  bool operator==(const PluginCandidate&) const = default;
};

// Adds a library that may be chosen. The Python package registers what it finds installed, best first; a name may come
// several times, with different paths. Thread safe; has no effect on a client that has started.
void register_plugin_path(const std::string& name, const std::string& library_path);

// The libraries to try, best first:
// 1. PJRT_PLUGIN_LIBRARY_PATH, the path of a library, alone;
// 2. PJRT_DEVICE (CPU, CUDA or GPU, ROCM, TPU, or a plugin's name): the registered libraries of that name;
// 3. every registered library, accelerators first.
// Where nothing was registered, as in a program without Python, the libraries of known packages that lie beside ours
// stand in; the path given when this was built, a CPU plugin's, comes last. Throws kNotFound, saying what was looked
// for, when nothing is left.
std::vector<PluginCandidate> find_plugins();

// True for a plugin that takes the option `cpu_device_count`; judged by name, since the client has not started.
bool is_cpu(const PluginCandidate& candidate);

}  // namespace torch_pjrt::pjrt
