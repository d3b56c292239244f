#include "torch/host_team.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <omp.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

namespace torch_pjrt {
namespace {

using Clock = std::chrono::steady_clock;

class Team {
 public:
  // Alive for the process, as its threads are.
  static Team& get() {
    static auto* team = new Team();
    return *team;
  }

  void run(int64_t num_shares, const std::function<void(int64_t)>& share) {
    grow(at::get_num_threads() - 1);
    share_ = &share;
    error_ = nullptr;
    num_unfinished_.store(num_shares, std::memory_order_relaxed);
    // Publishes the fields above to whoever claims a share.
    num_unclaimed_.store(num_shares, std::memory_order_release);
    wake();
    {
      const SingleThreaded alone;
      while (claim_one()) {
      }
    }
    while (num_unfinished_.load(std::memory_order_acquire) > 0) sched_yield();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void grow(int num_threads) {
    for (; num_threads_ < num_threads; ++num_threads_) {
      std::thread([this] { work(); }).detach();
    }
  }

  bool claim_one() {
    int64_t unclaimed = num_unclaimed_.load(std::memory_order_acquire);
    while (unclaimed > 0 &&
           !num_unclaimed_.compare_exchange_weak(unclaimed, unclaimed - 1, std::memory_order_acq_rel)) {
    }
    if (unclaimed <= 0) return false;
    try {
      (*share_)(unclaimed - 1);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
    num_unfinished_.fetch_sub(1, std::memory_order_acq_rel);
    return true;
  }

  void work() {
    at::internal::lazy_init_num_threads();  // else the first kernel would set the number again
    omp_set_num_threads(1);
    const c10::InferenceMode no_autograd;
    auto last_share = Clock::now();
    while (true) {
      if (claim_one()) {
        last_share = Clock::now();
      } else if (Clock::now() - last_share < kAwake) {
        sched_yield();
      } else {
        sleep();
        last_share = Clock::now();
      }
    }
  }

  void sleep() {
    const uint32_t seen = num_wakes_.load();
    num_asleep_.fetch_add(1);
    if (num_unclaimed_.load() <= 0) num_wakes_.wait(seen);
    num_asleep_.fetch_sub(1);
  }

  void wake() {
    num_wakes_.fetch_add(1);
    if (num_asleep_.load() > 0) num_wakes_.notify_all();
  }

  // Longer than what XLA computes between two calls, as a rule, and shorter than what anybody would notice.
  static constexpr auto kAwake = std::chrono::microseconds(500);

  const std::function<void(int64_t)>* share_ = nullptr;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  int num_threads_ = 0;
  std::atomic<int64_t> num_unclaimed_{0};
  std::atomic<int64_t> num_unfinished_{0};
  std::atomic<uint32_t> num_wakes_{0};
  std::atomic<int> num_asleep_{0};
};

}  // namespace

SingleThreaded::SingleThreaded() : num_threads_(at::get_num_threads()) { omp_set_num_threads(1); }
SingleThreaded::~SingleThreaded() { omp_set_num_threads(num_threads_); }

void run_shares(int64_t num_shares, const std::function<void(int64_t)>& share) { Team::get().run(num_shares, share); }

}  // namespace torch_pjrt
