#include "exec/statistics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>

namespace torch_pjrt {
namespace {

template <typename T>
struct Table {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<T>, std::less<>> entries;
};

// Leaked: threads of the plugin may record while static objects are destroyed.
Table<Counter>& counters() {
  static auto& table = *new Table<Counter>;
  return table;
}

Table<Metric>& metrics() {
  static auto& table = *new Table<Metric>;
  return table;
}

template <typename T, typename... Args>
T& find_or_make(Table<T>& table, std::string_view name, const Args&... args) {
  const std::lock_guard lock(table.mutex);
  auto found = table.entries.find(name);
  if (found == table.entries.end()) found = table.entries.emplace(name, std::make_unique<T>(args...)).first;
  return *found->second;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

double Metric::Snapshot::percentile(double fraction) const {
  if (samples.empty()) return 0;
  std::vector<double> values;
  values.reserve(samples.size());
  for (const Sample& sample : samples) values.push_back(sample.value);
  const double rank = std::ceil(fraction * static_cast<double>(values.size())) - 1;
  const auto index = static_cast<size_t>(std::clamp(rank, 0.0, static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(index), values.end());
  return values[index];
}

void Metric::record(double value) {
  const Sample sample{now_seconds(), value};
  const std::lock_guard lock(mutex_);
  if (ring_.size() < kMaxSamples) {
    ring_.push_back(sample);
  } else {
    ring_[static_cast<size_t>(total_samples_) % kMaxSamples] = sample;
  }
  ++total_samples_;
  accumulator_ += value;
}

Metric::Snapshot Metric::snapshot() const {
  const std::lock_guard lock(mutex_);
  Snapshot result{total_samples_, accumulator_, ring_};
  // Once full, the slot that the next sample goes to holds the oldest one.
  if (ring_.size() == kMaxSamples) {
    const auto oldest = static_cast<ptrdiff_t>(static_cast<size_t>(total_samples_) % kMaxSamples);
    std::rotate(result.samples.begin(), result.samples.begin() + oldest, result.samples.end());
  }
  return result;
}

Counter& counter(std::string_view name) { return find_or_make(counters(), name); }

Metric& metric(std::string_view name, Unit unit) { return find_or_make(metrics(), name, unit); }

std::vector<std::pair<std::string, int64_t>> list_counters() {
  const std::lock_guard lock(counters().mutex);
  std::vector<std::pair<std::string, int64_t>> result;
  for (const auto& [name, entry] : counters().entries) {
    if (const int64_t value = entry->value(); value != 0) result.emplace_back(name, value);
  }
  return result;
}

std::vector<std::pair<std::string, const Metric*>> list_metrics() {
  const std::lock_guard lock(metrics().mutex);
  std::vector<std::pair<std::string, const Metric*>> result;
  for (const auto& [name, entry] : metrics().entries) {
    if (entry->snapshot().total_samples > 0) result.emplace_back(name, entry.get());
  }
  return result;
}

void clear_counters() {
  const std::lock_guard lock(counters().mutex);
  for (const auto& [name, entry] : counters().entries) entry->value_ = 0;
}

void clear_metrics() {
  const std::lock_guard lock(metrics().mutex);
  for (const auto& [name, entry] : metrics().entries) {
    const std::lock_guard entry_lock(entry->mutex_);
    entry->total_samples_ = 0;
    entry->accumulator_ = 0;
    entry->ring_.clear();
  }
}

}  // namespace torch_pjrt
