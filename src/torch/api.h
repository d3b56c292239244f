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
// Returns when autograd's threads hold nothing of an earlier backward; to be called before the interpreter ends.
void settle_autograd();
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
// What the device has: on XLA CPU the host's memory and swap, elsewhere what the plugin says; 0 when it does not say.
int64_t bytes_limit(int device);
// Gives freed host memory that is kept for the next run back to the system.
void release_freed_memory();

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
  int64_t id = 0;           // 0, 1, 2, ... in the order of compilation
  std::string cause;        // what made the graph be cut, and where: ".item(), at train@train.py:31"
  std::string explanation;  // why no earlier program served
  int64_t num_parameters = 0;
  int64_t num_outputs = 0;
};
// One entry for each program compiled or loaded in this process, oldest first.
std::vector<ExecutableStatistics> executables();

// The structure of a program's graph. Empty when it is no longer kept (the newest 256 programs are).
struct ProgramGraph {
  struct Node {
    std::string op;        // "aten::mm"
    std::string type;      // "f32[4,3]{1,0}", of several results "(f32[4,3]{1,0}, s64[4]{0})"
    std::string location;  // "forward@model.py:12"; empty when lines were not recorded
    int64_t size_bytes = 0;
    int64_t region = 0;  // the recomputation that it belongs to; 0 for none
    // Places of the nodes that it reads; -1 - i for parameter i.
    std::vector<int64_t> operands;
    bool is_output = false;
  };
  std::vector<Node> nodes;
  std::vector<std::string> parameters;  // types
  std::vector<bool> donated;            // parallel to `parameters`
};
ProgramGraph program_graph(int64_t id);
// The compiled program in the plugin's form, usually a serialized HloModuleProto. Throws when it is not in memory any
// more.
std::string optimized_program(int64_t id);

// Source lines.

// Every operator recorded from now on carries the Python line that recorded it (XLA_IR_DEBUG).
void set_ir_debug(bool wanted);
bool ir_debug();

// Timed events, for torch_xla.debug.report.

struct Event {
  std::string kind;  // "record", "cut", "compile", "execute", "wait", "download", "upload"
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t program = -1;  // id of the program; -1 where there is none
  int64_t bytes = 0;
  std::string cause;  // of a cut
};
// Starts anew; at most the newest 65,536 events are kept.
void start_recording();
void stop_recording();
bool is_recording();
std::vector<Event> recorded_events();

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
void clear_counters();
void clear_metrics();

// Options that XLA understands (debug flags, as in XLA_FLAGS without the dashes), applied to programs compiled from now
// on; they are part of a program's identity.
void set_compile_options(std::map<std::string, std::string> options);

// Compiled programs are kept in this directory between processes; an empty path keeps none. Until the first call it is
// XLA_PERSISTENT_CACHE_PATH, else a folder of the user's cache.
void initialize_cache(const std::string& path, bool readonly);
// Programs in memory.
int64_t num_cached_programs();
// A region that is to stay one graph: no step or round is cut inside. Opened as often as closed.
void open_uncut_region();
void close_uncut_region();
// Kinds of calls (operator, types, attributes) whose signature is remembered.
int64_t num_remembered_calls();

// Whether PyTorch's CPU kernels run inside compiled programs: the plugin takes them, and XLA_ATEN_KERNELS is not 0.
bool host_kernels_on();
// For comparison; programs compiled before stay as they are. Returns what it was. Starts no client.
bool set_host_kernels_wanted(bool is_wanted);
}  // namespace torch_pjrt::api
