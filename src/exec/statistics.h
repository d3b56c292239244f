// Named counters and metrics of the process, behind torch_xla.debug.metrics. Thread safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace torch_pjrt {

class Counter {
 public:
  void add(int64_t amount = 1) noexcept { value_.fetch_add(amount, std::memory_order_relaxed); }
  int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  friend void clear_counters();
  std::atomic<int64_t> value_{0};
};

enum class Unit { kSeconds, kBytes, kNumber };

// A series of samples: their number and sum, and the newest ones in full.
class Metric {
 public:
  static constexpr size_t kMaxSamples = 1024;

  struct Sample {
    double timestamp_seconds;  // since the Unix epoch
    double value;
  };
  struct Snapshot {
    int64_t total_samples = 0;
    double accumulator = 0;       // sum of all values
    std::vector<Sample> samples;  // the newest kMaxSamples, oldest first
    // Of `samples`, by nearest rank; 0 when there are none. `fraction` is in [0, 1].
    double percentile(double fraction) const;
  };

  explicit Metric(Unit unit) : unit_(unit) {}

  void record(double value);
  Snapshot snapshot() const;
  Unit unit() const { return unit_; }

 private:
  friend void clear_metrics();

  const Unit unit_;
  mutable std::mutex mutex_;
  int64_t total_samples_ = 0;
  double accumulator_ = 0;
  std::vector<Sample> ring_;
};

// The counter or metric of this name, made at the first call; the reference is good for the process, so a hot path asks
// once.
Counter& counter(std::string_view name);
Metric& metric(std::string_view name, Unit unit = Unit::kSeconds);

// Those that counted something since they were last cleared, by name.
std::vector<std::pair<std::string, int64_t>> list_counters();
std::vector<std::pair<std::string, const Metric*>> list_metrics();

void clear_counters();
void clear_metrics();

}  // namespace torch_pjrt
