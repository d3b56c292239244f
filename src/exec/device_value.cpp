#include "exec/device_value.h"

#include <utility>

#include "exec/device_memory.h"
#include "exec/runtime.h"

namespace torch_pjrt {

DeviceValue::DeviceValue(TensorType type, int device, std::vector<pjrt::Buffer> buffers, size_t size_bytes,
                         Ref<ProgramRecord> producer, Ref<RunOutcome> outcome)
    : DeviceData(std::move(type), device),
      buffers_(std::move(buffers)),
      size_bytes_(size_bytes),
      producer_(std::move(producer)),
      outcome_(std::move(outcome)) {
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
  check_not_lost();
  TP_CHECK(!is_donated(), "waiting for a donated value");
  try {
    for (const pjrt::Buffer& buffer : buffers_) buffer.ready_event().await();
  } catch (const Error& error) {
    throw explain(error);
  }
}

Error DeviceValue::explain(const Error& error) const {
  if (!producer_) return error;
  const Error explained = torch_pjrt::explain(error, *producer_);
  if (outcome_) return explained;
  return Error(explained.code(),
               concat(explained.what(), ". The value of this tensor was lost with that program; assign it anew"));
}

void DeviceValue::check_not_lost() const {
  if (is_donated() && loss_) throw *loss_;
}

void DeviceValue::mark_lost(const Error& error) {
  if (is_donated()) return;
  loss_.emplace(error.code(), concat(error.what(),
                                     ". The value of a tensor that this program was to overwrite was lost with it; "
                                     "assign it anew"));
  mark_donated();
}

void DeviceValue::mark_donated() noexcept {
  if (!donated_.exchange(true, std::memory_order_acq_rel)) {
    DeviceMemory::of(device()).remove(static_cast<int64_t>(size_bytes_));
  }
}

}  // namespace torch_pjrt
