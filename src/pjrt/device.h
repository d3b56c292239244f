// A device of a client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pjrt/api.h"
#include "pjrt/named_value.h"

namespace torch_pjrt::pjrt {

// What the plugin's allocator reports; absent where it does not say.
struct DeviceMemoryStats {
  int64_t bytes_in_use = 0;
  std::optional<int64_t> peak_bytes_in_use;
  std::optional<int64_t> bytes_limit;
};

// A handle; the client owns the device.
class Device {
 public:
  Device(Api api, PJRT_Device* device) : api_(api), device_(device) {}

  PJRT_Device* raw() const { return device_; }
  // Unique among all devices of all processes.
  int id() const;
  int process_index() const;
  bool is_addressable() const;
  // "cpu", "NVIDIA H200", "TPU v4"
  std::string kind() const;
  std::string debug_string() const;
  NamedValues attributes() const;
  // nullopt when the plugin keeps no such statistics.
  std::optional<DeviceMemoryStats> memory_stats() const;

  bool operator==(const Device& other) const { return device_ == other.device_; }

 private:
  PJRT_DeviceDescription* description() const;

  Api api_;
  PJRT_Device* device_;
};

}  // namespace torch_pjrt::pjrt
