#include "exec/runtime.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/sysinfo.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/env.h"
#include "exec/device_memory.h"
#include "exec/host_calls.h"
#include "exec/statistics.h"
#include "exec/timeline.h"
#include "ops/host_kernel.h"
#include "pjrt/discovery.h"
#include "pjrt/plugin_memory.h"

namespace torch_pjrt {
namespace {

// Never destroyed: the plugin's threads outlive static objects, and values may be released after them.
std::atomic<Runtime*> g_runtime{nullptr};
std::atomic<bool> g_forked_child{false};

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

int64_t cpu_device_count() {
  const int64_t count = env_int("CPU_NUM_DEVICES", 1);
  TP_USER_CHECK(count >= 1 && count <= kMaxDevices, kValueError, "CPU_NUM_DEVICES: expected 1 to ", kMaxDevices,
                ", got ", count);
  return count;
}

std::unique_ptr<pjrt::Client> start_client(const pjrt::PluginCandidate& candidate) {
  const pjrt::Plugin& plugin = pjrt::Plugin::load(candidate.library_path);
  pjrt::NamedValues options;
  if (pjrt::is_cpu(candidate)) options.emplace_back("cpu_device_count", cpu_device_count());
  return std::make_unique<pjrt::Client>(plugin, options);
}

// Fast math and fast min/max change results: with them XLA CPU drops NaN. What XLA_FLAGS sets is the user's choice.
std::vector<pjrt::OptionOverride> cpu_overrides() {
  const std::string flags = env_string("XLA_FLAGS").value_or("");
  std::vector<pjrt::OptionOverride> overrides;
  for (const char* name : {"xla_cpu_enable_fast_math", "xla_cpu_enable_fast_min_max"}) {
    if (flags.find(name) == std::string::npos) overrides.emplace_back(name, false);
  }
  return overrides;
}

// Every run of a program allocates its temporaries and outputs. By default the C library gives large blocks back to the
// system at once, and the pages of the next run are zeroed and mapped again: a quarter of a small convolutional step.
// Its own memory the plugin takes from pjrt::plugin_blocks; this is for what PyTorch's kernels take.
void keep_freed_memory(const pjrt::Plugin& plugin) {
  constexpr int kLargestOwnBlock = 32 << 20;  // what glibc's own adaptation ends at
  constexpr int kKept = 256 << 20;
  if (getenv("MALLOC_MMAP_THRESHOLD_") != nullptr || getenv("MALLOC_TRIM_THRESHOLD_") != nullptr) return;
  mallopt(M_MMAP_THRESHOLD, kLargestOwnBlock);
  mallopt(M_TRIM_THRESHOLD, kKept);
  if (!pjrt::use_plugin_blocks(plugin)) counter("PluginBlocksUnavailable").add();
}

std::string make_fingerprint(const pjrt::Client& client) {
  const pjrt::Api api = client.api();
  std::string text = concat(client.platform_name(), "|", client.platform_version(), "|", api.major_version(), ".",
                            api.minor_version(), "|", client.addressable_devices().front().kind());
  for (const auto& [name, value] : client.plugin().attributes()) text += concat("|", name, "=", pjrt::to_string(value));
  return text;
}

int64_t find_memory_limit(const pjrt::Device& device, bool is_cpu) {
  if (is_cpu) {
    struct sysinfo host{};
    if (sysinfo(&host) != 0) return 0;
    return static_cast<int64_t>((host.totalram + host.totalswap) * host.mem_unit);
  }
  const auto stats = device.memory_stats();
  return stats ? stats->bytes_limit.value_or(0) : 0;
}

// XLA CPU hands every transfer to another thread, which costs up to 30 us; its buffers are host memory, row-major.
void copy_to_host(const pjrt::Buffer& buffer, void* dst, size_t size_bytes, bool is_cpu) {
  if (!is_cpu) {
    buffer.to_host(dst, size_bytes).await();
  } else if (size_bytes > 0) {
    std::memcpy(dst, buffer.unsafe_pointer(), size_bytes);
  } else {
    buffer.ready_event().await();
  }
}

// Programs that still run at exit would use what static destructors tear down.
void drain_at_exit() {
  Runtime* runtime = g_runtime.load();
  if (runtime == nullptr || g_forked_child) return;
  for (int device = 0; device < runtime->num_devices(); ++device) runtime->in_flight(device).drain();
}

}  // namespace

Runtime::Runtime(std::unique_ptr<pjrt::Client> client, bool is_cpu)
    : client_(std::move(client)), is_cpu_(is_cpu), fingerprint_(make_fingerprint(*client_)) {
  TP_USER_CHECK(num_devices() <= kMaxDevices, kFailedPrecondition, "the plugin has ", num_devices(),
                " devices; at most ", kMaxDevices, " are supported");
  if (is_cpu_) {
    default_overrides_ = cpu_overrides();
    keep_freed_memory(client_->plugin());
    set_host_kernels_available(register_host_calls(*client_));
  }
  for (int i = 0; i < num_devices(); ++i) memory_limits_.push_back(find_memory_limit(device(i), is_cpu_));
  for (int i = 0; i < num_devices(); ++i) in_flight_.push_back(std::make_unique<InFlight>());
}

std::unique_ptr<Runtime> Runtime::start() {
  // XLA logs to stderr what its errors say as well, and more; the errors reach the user as exceptions.
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  std::string failures;
  ErrorCode code = ErrorCode::kUnavailable;
  const std::vector<pjrt::PluginCandidate> candidates = pjrt::find_plugins();
  for (const pjrt::PluginCandidate& candidate : candidates) {
    try {
      auto client = start_client(candidate);
      TP_USER_CHECK(!client->addressable_devices().empty(), kUnavailable, "it has no addressable device");
      const bool is_cpu = client->platform_name() == "cpu";
      return std::unique_ptr<Runtime>(new Runtime(std::move(client), is_cpu));
    } catch (const Error& error) {
      code = error.code();
      failures += concat(failures.empty() ? "" : "; ", "plugin ", candidate.name, " (", candidate.library_path,
                         "): ", error.what());
    }
  }
  throw_error(code, "no PJRT client could be started: ", failures);
}

Runtime& Runtime::get() {
  if (Runtime* runtime = g_runtime.load(std::memory_order_acquire)) [[likely]] {
    TP_USER_CHECK(
        !is_forked_child(), kFailedPrecondition,
        "Cannot use the XLA device in a forked subprocess: its PJRT client was started before the fork. To use "
        "it with multiprocessing, you must use the 'spawn' start method");
    return *runtime;
  }
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (Runtime* runtime = g_runtime.load(std::memory_order_acquire)) return *runtime;
  Runtime* runtime = start().release();
  pthread_atfork(nullptr, nullptr, [] { g_forked_child = true; });
  std::atexit(drain_at_exit);
  g_runtime.store(runtime, std::memory_order_release);
  return *runtime;
}

bool Runtime::is_started() noexcept { return g_runtime.load(std::memory_order_acquire) != nullptr; }

bool Runtime::is_forked_child() noexcept { return g_forked_child.load(std::memory_order_relaxed); }

int Runtime::device_count() {
  if (!is_started() && pjrt::is_cpu(pjrt::find_plugins().front())) return static_cast<int>(cpu_device_count());
  return get().num_devices();
}

const pjrt::Device& Runtime::device(int ordinal) const {
  TP_USER_CHECK(ordinal >= 0 && ordinal < num_devices(), kIndexError, "xla:", ordinal,
                ": invalid device ordinal; there ",
                num_devices() == 1 ? "is 1 device" : concat("are ", num_devices(), " devices"));
  return client_->addressable_devices()[static_cast<size_t>(ordinal)];
}

InFlight& Runtime::in_flight(int device) {
  TP_CHECK(device >= 0 && device < num_devices(), "device ", device);
  return *in_flight_[static_cast<size_t>(device)];
}

Ref<DeviceValue> Runtime::upload(const void* data, const TensorType& type, int device) {
  static Metric& time = metric("TransferToDeviceTime");
  static Metric& bytes = metric("OutboundData", Unit::kBytes);
  TimelineSpan span(TimelineEvent::Kind::kUpload);
  span.bytes = static_cast<int64_t>(type.size_bytes());
  const Stopwatch stopwatch;
  std::vector<pjrt::Buffer> buffers;
  buffers.push_back(client_->to_device(data, type, this->device(device)));
  const size_t size_bytes = buffers[0].on_device_size_bytes();
  auto value = make_ref<DeviceValue>(type, device, std::move(buffers), size_bytes);
  time.record(stopwatch.seconds());
  bytes.record(static_cast<double>(type.size_bytes()));
  return value;
}

Ref<DeviceValue> Runtime::upload_zero_copy(const void* data, const TensorType& type, int device,
                                           std::function<void()> release) {
  static Metric& time = metric("TransferToDeviceTime");
  static Metric& bytes = metric("OutboundData", Unit::kBytes);
  TimelineSpan span(TimelineEvent::Kind::kUpload);
  span.bytes = static_cast<int64_t>(type.size_bytes());
  const Stopwatch stopwatch;
  pjrt::Event done;
  std::vector<pjrt::Buffer> buffers;
  buffers.push_back(client_->to_device(data, type, this->device(device), pjrt::HostMemory::kAliasImmutable, &done));
  const size_t size_bytes = buffers[0].on_device_size_bytes();
  auto value = make_ref<DeviceValue>(type, device, std::move(buffers), size_bytes);
  std::move(done).on_ready([release = std::move(release)](const Error*) { release(); });
  time.record(stopwatch.seconds());
  bytes.record(static_cast<double>(type.size_bytes()));
  return value;
}

void Runtime::download(const DeviceValue& value, void* dst) {
  static Metric& time = metric("TransferFromDeviceTime");
  static Metric& bytes = metric("InboundData", Unit::kBytes);
  value.check_not_lost();
  TP_CHECK(!value.is_donated(), "downloading a donated value");
  TP_USER_CHECK(value.buffers().size() == 1, kInvalidArgument, "download: a value sharded over ",
                value.buffers().size(), " devices must be gathered first");
  const Stopwatch stopwatch;
  const size_t size_bytes = value.type().size_bytes();
  TimelineSpan span(TimelineEvent::Kind::kDownload);
  span.bytes = static_cast<int64_t>(size_bytes);
  try {
    copy_to_host(value.buffers()[0], dst, size_bytes, is_cpu_);
  } catch (const Error& error) {
    // Its run may report the error after its value does.
    in_flight(value.device()).drain();
    in_flight(value.device()).forget_error();
    throw value.explain(error);
  }
  time.record(stopwatch.seconds());
  bytes.record(static_cast<double>(size_bytes));
}

Ref<DeviceValue> Runtime::copy_to_device(const Ref<DeviceValue>& value, int device) {
  value->check_not_lost();
  TP_CHECK(!value->is_donated(), "copying a donated value");
  if (value->device() == device) return value;
  TP_USER_CHECK(value->buffers().size() == 1, kInvalidArgument, "copy_to_device: a value sharded over ",
                value->buffers().size(), " devices must be gathered first");
  std::vector<pjrt::Buffer> buffers;
  buffers.push_back(value->buffers()[0].copy_to(this->device(device)));
  return make_ref<DeviceValue>(value->type(), device, std::move(buffers), value->size_bytes());
}

void Runtime::return_compiler_memory(double seconds) const {
  constexpr double kWorthwhile = 0.02;
  if (is_cpu_ && seconds >= kWorthwhile) malloc_trim(0);
}

void Runtime::release_freed_memory() const {
  if (!is_cpu_) return;
  pjrt::plugin_blocks().release();
  malloc_trim(0);
}

void Runtime::wait_all(int device) {
  this->device(device);
  const TimelineSpan span(TimelineEvent::Kind::kWait);
  in_flight(device).wait();
}

}  // namespace torch_pjrt
