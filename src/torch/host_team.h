// The threads that share a host call: those of XLA's own pool.
//
// XLA calls from several of its threads, which stay awake for a while when they have nothing to do. OpenMP would keep a
// team for each of them, and lets teams sleep between regions as soon as there are more threads than cores, so that
// each region begins by waking sleepers; threads of our own would take the cores from XLA's. So a call is cut into
// shares, each of which one thread computes alone. A thread takes shares until none is left, and waits for nothing but
// shares that already run: where the pool is busy, the caller computes more of them.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

namespace torch_pjrt {

// Where a host call finds other threads.
class WorkerPool {
 public:
  virtual int64_t num_threads() const = 0;
  // Calls task(data) later, or at once, on some thread; false when that is impossible.
  virtual bool schedule(void (*task)(void*), void* data) const = 0;

 protected:
  ~WorkerPool() = default;
};

// While this lives, host calls of this thread find others in `pool`.
class UsesPool {
 public:
  explicit UsesPool(const WorkerPool& pool);
  UsesPool(const UsesPool&) = delete;
  UsesPool& operator=(const UsesPool&) = delete;
  ~UsesPool();

 private:
  const WorkerPool* const outer_;
};

// How many threads may share a call of this thread: not more than PyTorch would use; 1 without a pool.
int64_t num_sharing_threads();

// Calls share(i) for i in [0, num_shares), on this thread and on others; PyTorch starts no threads of its own in
// them. Rethrows the exception of the first share that fails.
void run_shares(int64_t num_shares, const std::function<void(int64_t)>& share);

// Held by a call that is not cut into shares and has threads of OpenMP's: as many as the square of the cores, unless
// one call has them all. Nothing that waits for XLA runs under it.
std::mutex& openmp_team();

// While this lives, PyTorch's kernels on this thread start no other threads.
class SingleThreaded {
 public:
  SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;
  ~SingleThreaded();

 private:
  int num_threads_;
  int num_mkl_threads_ = 0;
};

}  // namespace torch_pjrt
