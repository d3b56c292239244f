// A value that exists, or will exist, on a device.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "exec/program_registry.h"
#include "exec/run_outcome.h"
#include "lazy/device_data.h"
#include "pjrt/buffer.h"

namespace torch_pjrt {

// Immutable and shared. Its data may still be computed; an error of that computation surfaces at await.
class DeviceValue final : public lazy::DeviceData {
 public:
  // One buffer, or one for each device that a sharded value lies on. `size_bytes` is what one of them takes on its
  // device. `producer` is the program that computes it; null for uploads. `outcome` is the run's, where that may fail
  // and the value can be computed again (see kept_runs.h).
  DeviceValue(TensorType type, int device, std::vector<pjrt::Buffer> buffers, size_t size_bytes,
              Ref<ProgramRecord> producer = {}, Ref<RunOutcome> outcome = {});
  ~DeviceValue() override;

  const std::vector<pjrt::Buffer>& buffers() const { return buffers_; }
  size_t size_bytes() const { return size_bytes_; }
  const Ref<RunOutcome>& outcome() const { return outcome_; }

  // Not the result of a program.
  bool is_uploaded() const { return !producer_; }
  // The smallest and the largest of the elements, if they are integers that somebody looked at. Needs lazy::mutex().
  bool has_extent() const { return extent_.has_value(); }
  void set_extent(int64_t smallest, int64_t largest) const { extent_.emplace(smallest, largest); }
  bool is_within(int64_t low, int64_t high) const { return extent_->first >= low && extent_->second < high; }

  bool is_ready() const;
  // Blocks until the data exists; throws the error of what computes it.
  void await() const;
  // `error` with the program that computes this value in its message, and what that means for the value.
  Error explain(const Error& error) const;

  // True once a program has consumed the buffers: the value can no longer be used.
  bool is_donated() const noexcept { return donated_.load(std::memory_order_acquire); }
  // Throws where a launch that failed has consumed the buffers: the error of that launch.
  void check_not_lost() const;

 private:
  friend class Program;
  void mark_donated() noexcept;
  void mark_lost(const Error& error);

  std::vector<pjrt::Buffer> buffers_;
  const size_t size_bytes_;
  const Ref<ProgramRecord> producer_;
  const Ref<RunOutcome> outcome_;
  mutable std::optional<std::pair<int64_t, int64_t>> extent_;
  std::atomic<bool> donated_{false};
  // Written before donated_, once.
  std::optional<Error> loss_;
};

}  // namespace torch_pjrt
