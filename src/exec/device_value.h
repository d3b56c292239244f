// A value that exists, or will exist, on a device.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "base/ref.h"
#include "exec/program_registry.h"
#include "lazy/device_data.h"
#include "pjrt/buffer.h"

namespace torch_pjrt {

// Immutable and shared. Its data may still be computed; an error of that computation surfaces at await.
class DeviceValue final : public lazy::DeviceData {
 public:
  // One buffer, or one for each device that a sharded value lies on. `size_bytes` is what one of them takes on its
  // device. `producer` is the program that computes it; null for uploads.
  DeviceValue(TensorType type, int device, std::vector<pjrt::Buffer> buffers, size_t size_bytes,
              Ref<ProgramRecord> producer = {});
  ~DeviceValue() override;

  const std::vector<pjrt::Buffer>& buffers() const { return buffers_; }
  size_t size_bytes() const { return size_bytes_; }

  bool is_ready() const;
  // Blocks until the data exists; throws the error of what computes it.
  void await() const;
  // `error` with the program that computes this value in its message.
  Error explain(const Error& error) const;

  // True once a program has consumed the buffers: the value can no longer be used.
  bool is_donated() const noexcept { return donated_.load(std::memory_order_acquire); }

 private:
  friend class Program;
  void mark_donated() noexcept;

  std::vector<pjrt::Buffer> buffers_;
  const size_t size_bytes_;
  const Ref<ProgramRecord> producer_;
  std::atomic<bool> donated_{false};
};

}  // namespace torch_pjrt
