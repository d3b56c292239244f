// The threads that share a host call with the thread of XLA's that makes it.
//
// OpenMP keeps a team for every thread that opens a parallel region, and lets teams sleep between regions as soon as
// there are more threads than cores. XLA calls from several threads, so each region began by waking sleepers, some
// seven times in one convolution: two cores were 1.5 times as fast as one. These threads are awake while a program
// makes calls, and give their core away whenever anybody else wants it.
//
// They are never joined. Runtime waits at exit for every program, and so for every share; after it a thread of the team
// touches nothing but the team, which is never destroyed. A forked child has neither the threads nor the use of the
// device. The library is linked so that dlclose leaves it, and their code, where it is.
#pragma once

#include <cstdint>
#include <functional>

namespace torch_pjrt {

// Calls share(i) for i in [0, num_shares), on this thread and on up to at::get_num_threads() - 1 others; PyTorch starts
// no threads of its own in them. Rethrows the exception of the first share that fails. One call at a time.
void run_shares(int64_t num_shares, const std::function<void(int64_t)>& share);

// While this lives, PyTorch's kernels on this thread start no other threads.
class SingleThreaded {
 public:
  SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;
  ~SingleThreaded();

 private:
  int num_threads_;
};

}  // namespace torch_pjrt
