#include "torch/host_team.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace torch_pjrt {
namespace {

thread_local const WorkerPool* t_pool = nullptr;

// MKL forgets OpenMP's number of threads once torch.set_num_threads was called, but has one of its own for each thread.
// PyTorch links it statically and exports this; a PyTorch without MKL lacks it.
int set_mkl_threads(int num_threads) {
  static auto* const function = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "MKL_Set_Num_Threads_Local"));
  return function != nullptr ? function(num_threads) : 0;
}

class Shares {
 public:
  // The caller outlives every share, but not every thread that comes to look for one.
  Shares(int64_t count, const std::function<void(int64_t)>& share)
      : share_(share), num_unclaimed_(count), num_unfinished_(count) {}

  void work() {
    int64_t i = claim();
    if (i < 0) return;
    const SingleThreaded alone;
    for (; i >= 0; i = claim()) run(i);
  }

  void wait() {
    while (num_unfinished_.load(std::memory_order_acquire) > 0) sched_yield();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  int64_t claim() { return num_unclaimed_.fetch_sub(1, std::memory_order_relaxed) - 1; }

  void run(int64_t i) {
    try {
      share_(i);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
    num_unfinished_.fetch_sub(1, std::memory_order_release);
  }

  const std::function<void(int64_t)>& share_;
  std::atomic<int64_t> num_unclaimed_, num_unfinished_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

void join(void* data) {
  const std::unique_ptr<std::shared_ptr<Shares>> shares(static_cast<std::shared_ptr<Shares>*>(data));
  at::internal::lazy_init_num_threads();  // else the first kernel would set the number again
  const c10::InferenceMode no_autograd;
  (*shares)->work();
}

}  // namespace

UsesPool::UsesPool(const WorkerPool& pool) : outer_(std::exchange(t_pool, &pool)) {}
UsesPool::~UsesPool() { t_pool = outer_; }

std::mutex& openmp_team() {
  static auto* mutex = new std::mutex();
  return *mutex;
}

SingleThreaded::SingleThreaded() : num_threads_(at::get_num_threads()) {
  omp_set_num_threads(1);
  num_mkl_threads_ = set_mkl_threads(1);
}
SingleThreaded::~SingleThreaded() {
  set_mkl_threads(num_mkl_threads_);
  omp_set_num_threads(num_threads_);
}

int64_t num_sharing_threads() {
  return t_pool != nullptr ? std::min<int64_t>(at::get_num_threads(), t_pool->num_threads()) : 1;
}

void run_shares(int64_t num_shares, const std::function<void(int64_t)>& share) {
  const auto shares = std::make_shared<Shares>(num_shares, share);
  for (int64_t i = 1; i < std::min(num_shares, num_sharing_threads()); ++i) {
    auto data = std::make_unique<std::shared_ptr<Shares>>(shares);
    if (!t_pool->schedule(join, data.get())) break;
    data.release();
  }
  shares->work();
  shares->wait();
}

}  // namespace torch_pjrt
