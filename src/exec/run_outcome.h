// How a run that may fail ends.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "base/ref.h"

namespace torch_pjrt {

// Thread safe.
class RunOutcome final : public RefCounted {
 public:
  // `can_fail` for a program that may throw by itself; `sources` are the runs whose failure would be this one's.
  // `has_checks` when it has operators that are there for what they throw.
  RunOutcome(bool can_fail, std::vector<Ref<RunOutcome>> sources, bool has_checks)
      : can_fail_(can_fail), has_checks_(has_checks), sources_(std::move(sources)) {}

  bool can_fail() const { return can_fail_; }
  bool has_checks() const { return has_checks_; }
  const std::vector<Ref<RunOutcome>>& sources() const { return sources_; }

  // Called once, perhaps on a thread of the plugin.
  void finish(bool has_succeeded) noexcept {
    state_.store(has_succeeded ? State::kSucceeded : State::kFailed, std::memory_order_release);
  }
  bool has_failed() const { return state_.load(std::memory_order_acquire) == State::kFailed; }
  // Whether it has succeeded, or nothing is left that could make it fail.
  bool is_sound() const {
    const State state = state_.load(std::memory_order_acquire);
    if (state != State::kRunning) return state == State::kSucceeded;
    if (can_fail_) return false;
    for (const Ref<RunOutcome>& source : sources_) {
      if (!source->is_sound()) return false;
    }
    return true;
  }

 private:
  enum class State { kRunning, kSucceeded, kFailed };

  const bool can_fail_;
  const bool has_checks_;
  const std::vector<Ref<RunOutcome>> sources_;
  std::atomic<State> state_{State::kRunning};
};

}  // namespace torch_pjrt
