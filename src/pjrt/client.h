// A plugin's runtime: its devices, and where buffers and executables are made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_type.h"
#include "pjrt/buffer.h"
#include "pjrt/compile_options.h"
#include "pjrt/device.h"
#include "pjrt/executable.h"
#include "pjrt/plugin.h"

namespace torch_pjrt::pjrt {

// What the plugin may do with the host memory of an upload.
enum class HostMemory {
  // Read during the call only: it copies before it returns.
  kCopyNow,
  // Unchanged until the transfer is done.
  kUntilTransferred,
  // Unchanged while the buffer lives: it may alias the memory.
  kAliasImmutable,
};

// Must outlive every buffer and executable made by it. Thread safe.
class Client {
 public:
  // Options that the plugin knows: "cpu_device_count" (int64) of XLA CPU, "memory_fraction" (float) of XLA GPU, ...
  explicit Client(const Plugin& plugin, const NamedValues& options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  const Plugin& plugin() const { return *plugin_; }
  Api api() const { return api_; }
  const std::string& platform_name() const { return platform_name_; }
  const std::string& platform_version() const { return platform_version_; }
  int process_index() const;
  // Of all processes.
  std::vector<Device> devices() const;
  const std::vector<Device>& addressable_devices() const { return addressable_devices_; }

  // Copies, or aliases, the row-major elements at `data`. `done_with_host_memory`, unless null, becomes ready when the
  // plugin will not touch `data` again. `data` may be null when the type has no elements.
  Buffer to_device(const void* data, const TensorType& type, const Device& device,
                   HostMemory memory = HostMemory::kCopyNow, Event* done_with_host_memory = nullptr) const;

  // Compiles StableHLO text or bytecode.
  Executable compile(std::string_view program, const CompileOptions& options) const;
  // Loads what Executable::serialize gave.
  Executable deserialize(std::string_view serialized) const;

 private:
  // Delegated to, so that the destructor runs when the rest of the public constructor throws.
  explicit Client(const Plugin* plugin) : plugin_(plugin), api_(plugin->api()) {}

  const Plugin* plugin_;
  Api api_;
  PJRT_Client* client_ = nullptr;
  std::string platform_name_;
  std::string platform_version_;
  std::vector<Device> addressable_devices_;
};

}  // namespace torch_pjrt::pjrt
