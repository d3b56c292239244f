// PyTorch's kernels write their results at once where XLA wants them.
//
// A kernel allocates what it returns, and a program's buffers are XLA's, so each result was copied: a tenth of a
// convolution, and as much memory again. The allocator of the CPU is wrapped: while a ResultMemory lives on a thread,
// an allocation of that thread that is as large as a result gets the result's memory. A kernel may take it for anything
// else; what is returned from elsewhere is copied.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch_pjrt {

class ResultMemory {
 public:
  // Wraps the allocator, once. To be called where no other thread of ours runs yet: PyTorch reads its allocator without
  // a lock. Without it results are copied.
  static void prepare();
  // Offers the memory of those of `results` that are defined, large enough to matter, and without gaps, after so many
  // allocations of their sizes. They must live longer.
  explicit ResultMemory(const std::vector<at::Tensor>& results, int num_skipped = 0);
  ResultMemory(const ResultMemory&) = delete;
  ResultMemory& operator=(const ResultMemory&) = delete;
  ~ResultMemory();

  // Gives each defined result the value at its place, of its sizes, and releases the values. Throws c10::Error when the
  // kernel has kept a tensor in the memory of a result.
  void write(std::vector<at::Tensor> values);

 private:
  friend class LendingAllocator;
  struct Offer {
    void* memory;
    size_t size_bytes;
  };

  void* lend(size_t size_bytes);
  bool lies_in_offer(const at::Tensor& tensor) const;

  const std::vector<at::Tensor>& results_;
  std::vector<Offer> offers_;
  int num_skipped_;
  ResultMemory* const outer_;
};

}  // namespace torch_pjrt
