// Our own account of device memory: no CPU plugin keeps one.
#pragma once

#include <atomic>
#include <cstdint>

namespace torch_pjrt {

inline constexpr int kMaxDevices = 1024;

// Bytes of the live values on one device. Lock free.
class DeviceMemory {
 public:
  static DeviceMemory& of(int device);

  void add(int64_t bytes) noexcept;
  void remove(int64_t bytes) noexcept { live_.fetch_sub(bytes, std::memory_order_relaxed); }
  // Something that is allocated and freed again while a program runs: counts towards the peak only.
  void note_transient(int64_t bytes) noexcept { raise_peak(live_bytes() + bytes); }

  int64_t live_bytes() const noexcept { return live_.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const noexcept { return peak_.load(std::memory_order_relaxed); }
  // The peak from now on.
  void reset_peak() noexcept { peak_.store(live_bytes(), std::memory_order_relaxed); }

 private:
  void raise_peak(int64_t bytes) noexcept;

  std::atomic<int64_t> live_{0};
  std::atomic<int64_t> peak_{0};
};

}  // namespace torch_pjrt
