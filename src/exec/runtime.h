// The process's PJRT client, started at first use, and what crosses between host and device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ref.h"
#include "exec/device_value.h"
#include "exec/in_flight.h"
#include "pjrt/client.h"

namespace torch_pjrt {

// Thread safe. Devices are ordinals of `xla:0` ... `xla:n-1`, the client's addressable devices.
class Runtime {
 public:
  // Starts the client at the first call. When that fails it throws, and the next call tries again. Throws
  // kFailedPrecondition in a child forked from a process whose client had started.
  static Runtime& get();
  static bool is_started() noexcept;
  static bool is_forked_child() noexcept;
  // Number of addressable devices. Starts the client only where the number is not known before: XLA CPU has
  // CPU_NUM_DEVICES, or one.
  static int device_count();

  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  pjrt::Client& client() { return *client_; }
  // "cpu", "cuda", "rocm", "tpu", ...
  const std::string& platform() const { return client_->platform_name(); }
  bool is_cpu() const { return is_cpu_; }
  // What a compiled program depends on beside its text: plugin, version, device kind. A part of cache keys.
  const std::string& fingerprint() const { return fingerprint_; }
  int num_devices() const { return static_cast<int>(client_->addressable_devices().size()); }
  // kIndexError when there is no such device.
  const pjrt::Device& device(int ordinal) const;
  // Bytes that the device can have in use at most, whatever is freed; 0 when that is not known.
  int64_t memory_limit(int device) const { return memory_limits_.at(static_cast<size_t>(device)); }
  // XLA flags that every compilation of ours sets.
  const std::vector<pjrt::OptionOverride>& default_overrides() const { return default_overrides_; }

  // The row-major elements at `data`, which the call copies; `data` may be null when there are none.
  Ref<DeviceValue> upload(const void* data, const TensorType& type, int device);
  // As upload, but the value may alias `data`, which must stay unchanged until `release` is called: once, perhaps at
  // once, perhaps on a thread of the plugin. `release` must not throw.
  Ref<DeviceValue> upload_zero_copy(const void* data, const TensorType& type, int device,
                                    std::function<void()> release);
  // Copies value.type().size_bytes() bytes, row-major, to `dst`. Blocks; throws the error of what computes the value.
  void download(const DeviceValue& value, void* dst);
  // A copy on another device; the value itself when it is there already.
  Ref<DeviceValue> copy_to_device(const Ref<DeviceValue>& value, int device);

  // What was freed while a program was made, which took this long, goes back to the system (see keep_freed_memory()):
  // up to a third of what a training process holds. Takes milliseconds, so for a program that was made quickly it does
  // not.
  void return_compiler_memory(double seconds) const;
  // What is kept for the next run goes back to the system, on CPU plugins.
  void release_freed_memory() const;

  // Blocks until all that was started on the device has finished; throws the first error that no download has reported.
  void wait_all(int device);
  InFlight& in_flight(int device);

 private:
  Runtime(std::unique_ptr<pjrt::Client> client, bool is_cpu);
  static std::unique_ptr<Runtime> start();

  std::unique_ptr<pjrt::Client> client_;
  bool is_cpu_;
  std::string fingerprint_;
  std::vector<pjrt::OptionOverride> default_overrides_;
  std::vector<int64_t> memory_limits_;
  std::vector<std::unique_ptr<InFlight>> in_flight_;
};

}  // namespace torch_pjrt
