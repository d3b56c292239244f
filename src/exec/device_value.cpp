#include "exec/device_value.h"

#include <utility>

#include "exec/device_memory.h"
#include "exec/runtime.h"

namespace torch_pjrt {

DeviceValue::DeviceValue(TensorType type, int device, std::vector<pjrt::Buffer> buffers, size_t size_bytes,
                         Ref<ProgramRecord> producer)
    : DeviceData(std::move(type), device),
      buffers_(std::move(buffers)),
      size_bytes_(size_bytes),
      producer_(std::move(producer)) {
  DeviceMemory::of(device).add(static_cast<int64_t>(size_bytes_));
}

DeviceValue::~DeviceValue() {
  if (!is_donated()) DeviceMemory::of(device()).remove(static_cast<int64_t>(size_bytes_));
  if (Runtime::is_forked_child()) {
    for (pjrt::Buffer& buffer : buffers_) buffer.leak();
  }
}

bool DeviceValue::is_ready() const {
  for (const pjrt::Buffer& buffer : buffers_) {
    if (!buffer.ready_event().is_ready()) return false;
  }
  return true;
}

void DeviceValue::await() const {
  TP_CHECK(!is_donated(), "waiting for a donated value");
  try {
    for (const pjrt::Buffer& buffer : buffers_) buffer.ready_event().await();
  } catch (const Error& error) {
    throw explain(error);
  }
}

Error DeviceValue::explain(const Error& error) const {
  return producer_ ? torch_pjrt::explain(error, *producer_) : error;
}

void DeviceValue::mark_donated() noexcept {
  if (!donated_.exchange(true, std::memory_order_acq_rel)) {
    DeviceMemory::of(device()).remove(static_cast<int64_t>(size_bytes_));
  }
}

}  // namespace torch_pjrt
