#include "exec/in_flight.h"

#include <utility>

namespace torch_pjrt {

InFlight::Ticket InFlight::start() {
  const std::lock_guard lock(mutex_);
  running_.insert(running_.end(), next_);
  return next_++;
}

void InFlight::finish(Ticket ticket, const Error* error) {
  // Notified under the lock: a waiter may otherwise return, and end the process, before notify_all runs.
  const std::lock_guard lock(mutex_);
  running_.erase(ticket);
  if (error != nullptr && !error_) error_ = *error;
  finished_.notify_all();
}

void InFlight::wait_locked(std::unique_lock<std::mutex>& lock) {
  const Ticket end = next_;
  finished_.wait(lock, [&] { return running_.empty() || *running_.begin() >= end; });
}

void InFlight::wait() {
  std::unique_lock lock(mutex_);
  wait_locked(lock);
  if (error_) throw *std::exchange(error_, std::nullopt);
}

void InFlight::drain() noexcept {
  std::unique_lock lock(mutex_);
  wait_locked(lock);
}

bool InFlight::has_error() {
  const std::lock_guard lock(mutex_);
  return error_.has_value();
}

void InFlight::forget_error() {
  const std::lock_guard lock(mutex_);
  error_.reset();
}

}  // namespace torch_pjrt
