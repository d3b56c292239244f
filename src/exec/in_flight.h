// The executions that a device has not finished yet.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.h"

namespace torch_pjrt {

// Thread safe. Finishing may happen on the plugin's threads, in any order.
class InFlight {
 public:
  using Ticket = uint64_t;

  Ticket start();
  // `error` is null when the execution succeeded; the first one is kept for the next wait.
  void finish(Ticket ticket, const Error* error);
  // Blocks until everything started before the call has finished; then throws the stored error, once.
  void wait();
  // Blocks like `wait`, and leaves the error where it is.
  void drain() noexcept;
  // Whether there is an error that nobody has heard of.
  bool has_error();
  // The error has reached the user another way.
  void forget_error();

 private:
  void wait_locked(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable finished_;
  Ticket next_ = 0;
  std::set<Ticket> running_;
  std::optional<Error> error_;
};

}  // namespace torch_pjrt
