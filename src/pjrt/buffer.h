// A dense array on one device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"
#include "pjrt/device.h"
#include "pjrt/event.h"

namespace torch_pjrt::pjrt {

PJRT_Buffer_Type to_pjrt(DType dtype);
DType from_pjrt(PJRT_Buffer_Type type);

// Owns one PJRT_Buffer. The client must outlive it. Const members may be called from several threads.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Api api, PJRT_Buffer* buffer) : api_(api), buffer_(buffer) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  PJRT_Buffer* raw() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }

  TensorType type() const;
  Device device() const;
  // At least type().size_bytes(): a device may pad.
  size_t on_device_size_bytes() const;

  // Ready, or failed, once the data exists. Asked of a deleted buffer, it fails.
  Event ready_event() const;
  // Starts a copy of the row-major elements into `dst` of `size_bytes` bytes, which must live until the event is ready.
  Event to_host(void* dst, size_t size_bytes) const;
  // Starts a copy to another device of the same client.
  Buffer copy_to(const Device& device) const;

  // Frees the device memory once pending work has finished with it; the handle stays.
  void delete_memory();
  // Gives up ownership without destroying: for a forked child, where the plugin's threads are gone.
  void leak() noexcept { buffer_ = nullptr; }
  // True after delete_memory, and after the buffer was donated.
  bool is_deleted() const;

  // Address of the data where host and device share memory; blocks until the buffer is ready.
  const void* unsafe_pointer() const;

 private:
  Api api_{nullptr};
  PJRT_Buffer* buffer_ = nullptr;
};

}  // namespace torch_pjrt::pjrt
