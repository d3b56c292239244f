// What a program can ask of the backend beyond PyTorch's own interfaces. The Python bindings and C++ programs use this
// header alone. Functions are thread safe unless they say otherwise; `device` is the index of an xla device, and throws
// when there is no such device. Errors are c10::Error of the class that src/torch/errors.h chooses.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace torch_pjrt::api {

// Plugin and devices.

// Adds a plugin's shared library to those that the client may load, best first; names as in src/pjrt/discovery.h
// ("cpu", "xla_cuda12", ...). Which one is loaded is decided, by PJRT_PLUGIN_LIBRARY_PATH and PJRT_DEVICE, when the
// client starts.
void register_plugin(const std::string& name, const std::string& library_path);
// True once the first device value was made (or a function below asked the plugin something).
bool is_client_started();
// Number of addressable devices; starts the client.
int device_count();
// The plugin's platform name in lower case ("cpu", "cuda", "tpu"); starts the client.
std::string platform();
// One line about the plugin: path, platform version, PJRT API version; starts the client.
std::string plugin_description();
// The plugin's own names of its devices ("TFRT_CPU_0"); starts the client.
std::vector<std::string> device_descriptions();
// Thread-local device that "xla" without an index means. Setting it does not start the client; an index that the plugin
// lacks is refused at the first use.
int current_device();
void set_current_device(int device);

// Cutting and waiting.

// Cuts everything pending on `device` (-1: every device) into one program for each device and starts it. With `wait`,
// blocks until the results exist and rethrows an asynchronous error.
void sync(int device, bool wait);
// The same for the pending values that these tensors need, and no others.
void sync_tensors(const std::vector<at::Tensor>& tensors, bool wait);
// Blocks until every started execution has finished; rethrows the first error that none has reported yet.
void wait_device_ops();
// Operators recorded and not yet cut on `device`.
int64_t pending_nodes(int device);

// Random numbers.

// The state of a device's default generator: it lives on the host, so reading and writing it executes nothing and does
// not start the client.
struct RngState {
  uint64_t seed = 0;
  uint64_t offset = 0;
};
RngState rng_state(int device);
void set_rng_state(int device, RngState state);
// Seeds the default generator of every device and sets its offset to 0.
void manual_seed(uint64_t seed);

// Memory, in bytes.

// Buffers held by values of this process on `device`, and the most they have been since the start or the last reset.
int64_t bytes_live(int device);
int64_t bytes_peak(int device);
void reset_peak(int device);
// What the plugin says the device has; 0 when it does not say.
int64_t bytes_limit(int device);

// Tensors.

// A number that identifies the tensor's storage for the life of the process; views of one storage share it.
int64_t tensor_id(const at::Tensor& tensor);
// The pending computation of the tensors in HLO-like lines, one node a line, as StableHLO text, and as a Graphviz
// graph.
std::string tensors_text(const std::vector<at::Tensor>& tensors);
std::string tensors_hlo(const std::vector<at::Tensor>& tensors);
std::string tensors_dot(const std::vector<at::Tensor>& tensors);
// A detached tensor of the same geometry over a new storage that holds the same value. Nothing is copied or recorded:
// values are immutable, a later write to either storage replaces that storage's value.
at::Tensor clone_storage(const at::Tensor& tensor);
// The storage's bytes, copied to a CPU tensor [n] uint8. Cuts when the storage's value is pending, and blocks.
at::Tensor storage_to_cpu(const c10::Storage& storage);
// Changes the storage's size; contents up to the smaller size are kept, what is new reads as zero.
void resize_storage(const c10::Storage& storage, int64_t size_bytes);
// The differentiable identity that XLA may not move code across: one StableHLO optimization_barrier over all tensors.
std::vector<at::Tensor> optimization_barrier(const std::vector<at::Tensor>& tensors);
// Replaces the storages' values by their values behind one barrier: no autograd node, no version bump.
void optimization_barrier_(const std::vector<at::Tensor>& tensors);

// Statistics.

struct ExecutableStatistics {
  std::string name;
  double compile_seconds = 0;  // 0 when it came from the disk cache
  int64_t runs = 0;
  int64_t argument_bytes = 0;
  int64_t output_bytes = 0;
  int64_t temp_bytes = 0;
  int64_t alias_bytes = 0;  // outputs written over donated arguments
  int64_t num_nodes = 0;    // recorded operators that the program replaced
};
// One entry for each program compiled or loaded in this process, oldest first.
std::vector<ExecutableStatistics> executables();

// A series of measurements. Units: nanoseconds where `is_time`, bytes otherwise.
struct Timing {
  int64_t total_samples = 0;
  double accumulator = 0;
  bool is_time = true;
  // The last samples (at most 1,024), oldest first: (nanoseconds since the epoch when taken, value).
  std::vector<std::pair<int64_t, double>> samples;
};
// Names are stable: "CompileTime", "ExecuteTime", "TransferToDeviceTime", "CachedCompile", "aten::name" for a fallback.
std::map<std::string, int64_t> counters();
std::map<std::string, Timing> timings();
void clear_statistics();

// Options that XLA understands (debug flags, as in XLA_FLAGS without the dashes), applied to programs compiled from now
// on; they are part of a program's identity.
void set_compile_options(std::map<std::string, std::string> options);
}  // namespace torch_pjrt::api
