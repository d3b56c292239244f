#include "torch/api.h"

#include <ATen/ops/empty.h>
#include <c10/core/TensorImpl.h>

#include <array>

#include "exec/cut.h"
#include "exec/device_memory.h"
#include "exec/dump.h"
#include "exec/explain.h"
#include "exec/kept_runs.h"
#include "exec/program_store.h"
#include "exec/runtime.h"
#include "exec/statistics.h"
#include "exec/timeline.h"
#include "lazy/source_location.h"
#include "ops/host_kernel.h"
#include "pjrt/discovery.h"
#include "torch/access.h"
#include "torch/device.h"
#include "torch/errors.h"
#include "torch/memo.h"
#include "torch/scalar_type.h"
#include "torch/statistics.h"
#include "torch/step_cuts.h"
#include "torch/storage.h"

namespace torch_pjrt {

void count(const std::string& name) { counter(name).add(); }

namespace api {
namespace {

lazy::Buffer& xla_buffer(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.defined() && is_xla(tensor), "expected an xla tensor, got one on ",
              tensor.defined() ? tensor.device().str() : "no device");
  return buffer_of(tensor);
}

template <typename F>
std::string print_subgraph(const std::vector<at::Tensor>& tensors, F&& print) {
  if (tensors.empty()) return "";
  return with_c10_errors([&] {
    const lazy::Lock lock(lazy::mutex());
    std::vector<lazy::Value> values;
    for (const at::Tensor& tensor : tensors) {
      xla_buffer(tensor);
      values.push_back(read(tensor));
    }
    return print(take_subgraph(values[0].node()->graph(), values));
  });
}

}  // namespace

void sync(int device, bool wait) {
  const lazy::LocationId line = lazy::find_call_site().location;
  with_c10_errors([&] {
    std::vector<int> devices;
    {
      const lazy::Lock lock(lazy::mutex());
      for (lazy::Graph* graph : lazy::Graph::all()) {
        if (device >= 0 && graph->device() != device) continue;
        devices.push_back(graph->device());
        cut(*graph, "sync", line);
      }
    }
    if (!wait || !Runtime::is_started()) return;
    for (const int cut_device : devices) Runtime::get().wait_all(cut_device);
    const lazy::Lock lock(lazy::mutex());
    release_kept_runs();
  });
}

void sync_tensors(const std::vector<at::Tensor>& tensors, bool wait) {
  for (const at::Tensor& tensor : tensors) {
    bool is_pending = false;
    {
      const lazy::Lock lock(lazy::mutex());
      const lazy::Value& value = xla_buffer(tensor).value();
      is_pending = value && !value.is_data();
    }
    if (is_pending || wait) sync(tensor.device().index(), wait);
  }
}

void wait_device_ops() {
  if (!Runtime::is_started()) return;
  with_c10_errors([] {
    for (int device = 0; device < Runtime::get().num_devices(); ++device) Runtime::get().wait_all(device);
  });
}

int64_t pending_nodes(int device) {
  const lazy::Lock lock(lazy::mutex());
  return static_cast<int64_t>(lazy::Graph::get(device).num_pending());
}

bool is_client_started() { return Runtime::is_started(); }
int device_count() {
  return with_c10_errors([] { return Runtime::device_count(); });
}
std::string platform() {
  return with_c10_errors([] { return Runtime::get().platform(); });
}
void register_plugin(const std::string& name, const std::string& library_path) {
  pjrt::register_plugin_path(name, library_path);
}
std::string plugin_description() {
  return with_c10_errors([] { return Runtime::get().fingerprint(); });
}
std::vector<std::string> device_descriptions() {
  return with_c10_errors([] {
    std::vector<std::string> names;
    for (int i = 0; i < Runtime::get().num_devices(); ++i) names.push_back(Runtime::get().device(i).debug_string());
    return names;
  });
}
int current_device() { return torch_pjrt::current_device(); }
void set_current_device(int device) { torch_pjrt::set_current_device(device); }

RngState rng_state(int device) {
  const at::Generator& generator = default_generator(device);
  return {generator.current_seed(), generator.get_offset()};
}

void set_rng_state(int device, RngState state) {
  auto* generator = default_generator(device).unsafeGetGeneratorImpl();
  const std::lock_guard lock(generator->mutex_);
  generator->set_current_seed(state.seed);
  generator->set_offset(state.offset);
}

void manual_seed(uint64_t seed) { manual_seed_all(seed); }

int64_t bytes_live(int device) {
  const lazy::Lock lock(lazy::mutex());
  release_kept_runs();
  return DeviceMemory::of(device).live_bytes();
}
int64_t bytes_peak(int device) { return DeviceMemory::of(device).peak_bytes(); }
int64_t bytes_limit(int device) {
  return with_c10_errors([&] {
    Runtime& runtime = Runtime::get();
    runtime.device(device);
    return runtime.memory_limit(device);
  });
}
void release_freed_memory() {
  if (Runtime::is_started()) Runtime::get().release_freed_memory();
}
void reset_peak(int device) { DeviceMemory::of(device).reset_peak(); }

int64_t tensor_id(const at::Tensor& tensor) { return reinterpret_cast<int64_t>(&xla_buffer(tensor)); }

std::string tensors_text(const std::vector<at::Tensor>& tensors) { return print_subgraph(tensors, to_text); }
std::string tensors_hlo(const std::vector<at::Tensor>& tensors) { return print_subgraph(tensors, to_stablehlo); }
std::string tensors_dot(const std::vector<at::Tensor>& tensors) { return print_subgraph(tensors, to_dot); }

at::Tensor clone_storage(const at::Tensor& tensor) {
  const lazy::Lock lock(lazy::mutex());
  const lazy::Buffer& source = xla_buffer(tensor);
  const c10::Storage storage = make_storage(tensor.device().index(), source.size_bytes());
  buffer_of(storage).set(source.value(), source.layout());
  at::Tensor copy = tensor.detach();
  copy.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  return copy;
}

at::Tensor storage_to_cpu(const c10::Storage& storage) {
  Dims sizes;
  Dims strides;
  c10::ScalarType type = at::kByte;
  {
    // Reading the value with its own type and geometry records nothing, so that nothing is compiled for the copy.
    const lazy::Lock lock(lazy::mutex());
    const lazy::Buffer& buffer = buffer_of(storage);
    sizes = {static_cast<int64_t>(buffer.size_bytes())};
    if (buffer.value() && buffer.value().type().size_bytes() == buffer.size_bytes()) {
      type = to_scalar_type(buffer.value().type().dtype);
      sizes = buffer.layout() ? buffer.layout()->sizes : buffer.value().type().dims;
    }
    strides = buffer.layout() ? buffer.layout()->strides : row_major_strides(sizes);
  }
  const at::Tensor whole =
      at::empty({0}, at::TensorOptions(storage.device()).dtype(type)).set_(storage, 0, sizes, strides);
  // A copy keeps the strides of a dense tensor, and so the order of the bytes.
  const c10::Storage copy = whole.cpu().storage();
  return at::empty({0}, at::kByte).set_(copy, 0, {static_cast<int64_t>(copy.nbytes())}, {1});
}

void resize_storage(const c10::Storage& storage, int64_t size_bytes) {
  TORCH_CHECK(size_bytes >= 0, "resize_: expected a size of at least 0 bytes, got ", size_bytes);
  with_c10_errors([&] {
    buffer_of(storage);
    torch_pjrt::resize_storage(*storage.unsafeGetStorageImpl(), static_cast<size_t>(size_bytes));
  });
}

std::vector<ExecutableStatistics> executables() {
  std::vector<ExecutableStatistics> list;
  for (const auto& record : list_program_records()) {
    list.push_back({record->name, record->from_disk_cache ? 0 : record->compile_seconds, record->runs.load(),
                    record->argument_bytes, record->output_bytes, record->temp_bytes, record->alias_bytes,
                    record->num_nodes, record->id, record->cause, record->explanation, record->num_parameters,
                    record->num_outputs});
  }
  return list;
}

ProgramGraph program_graph(int64_t id) {
  ProgramGraph graph;
  const auto summary = GraphHistory::get().find(id);
  if (!summary) return graph;
  for (size_t i = 0; i < summary->nodes.size(); ++i) {
    const GraphSummary::Node& node = summary->nodes[i];
    ProgramGraph::Node& out = graph.nodes.emplace_back();
    out.op = node.signature->schema->name;
    out.type = result_text(*node.signature);
    out.location = lazy::location_text(node.location);
    out.region = node.region;
    for (const auto& output : node.signature->outputs) {
      if (output.is_defined) out.size_bytes += static_cast<int64_t>(output.type.size_bytes());
    }
    for (size_t k = 0; k < summary->num_operands(i); ++k) {
      const uint32_t source = summary->operands[node.first_operand + k].node;
      const bool is_parameter = (source & kParameterBit) != 0;
      out.operands.push_back(is_parameter ? -1 - static_cast<int64_t>(source & ~kParameterBit) : int64_t{source});
    }
  }
  for (const OutputRef& output : summary->outputs) graph.nodes[output.node].is_output = true;
  for (const TensorType& type : summary->parameters) graph.parameters.push_back(type.hlo());
  graph.donated = summary->donated;
  return graph;
}

std::string optimized_program(int64_t id) {
  return with_c10_errors([&] { return torch_pjrt::optimized_program(id); });
}

void set_ir_debug(bool wanted) { lazy::set_nodes_have_locations(wanted); }
bool ir_debug() { return lazy::nodes_have_locations(); }

void start_recording() { Timeline::get().start(); }
void stop_recording() { Timeline::get().stop(); }
bool is_recording() { return Timeline::is_on(); }

std::vector<Event> recorded_events() {
  static constexpr std::array kKinds{"record", "cut", "compile", "execute", "wait", "download", "upload"};
  std::vector<Event> events;
  for (TimelineEvent& event : Timeline::get().events()) {
    events.push_back({kKinds.at(static_cast<size_t>(event.kind)), event.begin_ns, event.end_ns, event.program,
                      event.bytes, std::move(event.cause)});
  }
  return events;
}

std::map<std::string, int64_t> counters() {
  const auto list = list_counters();
  return {list.begin(), list.end()};
}

std::map<std::string, Timing> timings() {
  constexpr double kNanoseconds = 1e9;
  std::map<std::string, Timing> result;
  for (const auto& [name, metric] : list_metrics()) {
    const auto snapshot = metric->snapshot();
    Timing& timing = result[name];
    timing.is_time = metric->unit() == Unit::kSeconds;
    const double scale = timing.is_time ? kNanoseconds : 1;
    timing.total_samples = snapshot.total_samples;
    timing.accumulator = snapshot.accumulator * scale;
    for (const auto& sample : snapshot.samples) {
      timing.samples.emplace_back(static_cast<int64_t>(sample.timestamp_seconds * kNanoseconds), sample.value * scale);
    }
  }
  return result;
}

void clear_counters() { torch_pjrt::clear_counters(); }

void clear_metrics() { torch_pjrt::clear_metrics(); }

void set_compile_options(std::map<std::string, std::string> options) {
  torch_pjrt::set_compile_options(std::move(options));
}

void initialize_cache(const std::string& path, bool readonly) {
  with_c10_errors([&] {
    const lazy::Lock lock(lazy::mutex());
    set_disk_cache(path, readonly);
  });
}

void open_uncut_region() { torch_pjrt::open_uncut_region(); }

void close_uncut_region() { torch_pjrt::close_uncut_region(); }

int64_t num_remembered_calls() {
  const lazy::Lock lock(lazy::mutex());
  return static_cast<int64_t>(MemoBase::num_entries());
}

int64_t num_cached_programs() { return static_cast<int64_t>(torch_pjrt::num_cached_programs()); }

bool host_kernels_on() {
  return with_c10_errors([] {
    Runtime::get();
    return torch_pjrt::host_kernels_on();
  });
}

bool set_host_kernels_wanted(bool is_wanted) { return torch_pjrt::set_host_kernels_wanted(is_wanted); }

}  // namespace api
}  // namespace torch_pjrt
