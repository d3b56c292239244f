#include "exec/device_memory.h"

#include <array>

#include "base/error.h"

namespace torch_pjrt {

DeviceMemory& DeviceMemory::of(int device) {
  static std::array<DeviceMemory, kMaxDevices> devices;
  TP_CHECK(device >= 0 && device < kMaxDevices, "device ", device);
  return devices[static_cast<size_t>(device)];
}

void DeviceMemory::add(int64_t bytes) noexcept {
  raise_peak(live_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

void DeviceMemory::raise_peak(int64_t bytes) noexcept {
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < bytes && !peak_.compare_exchange_weak(peak, bytes, std::memory_order_relaxed)) {
  }
}

}  // namespace torch_pjrt
