#include "torch/result_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/alignment.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <unordered_set>

#include "exec/statistics.h"

namespace torch_pjrt {
namespace {

constexpr size_t kMinBytes = 16 << 10;

thread_local ResultMemory* current = nullptr;

// What is lent now, for whoever frees it, on any thread.
class Lent {
 public:
  static Lent& get() {
    static auto* lent = new Lent();
    return *lent;
  }
  // False when it is lent already.
  bool lend(void* memory) {
    const std::lock_guard lock(mutex_);
    const bool is_new = memory_.insert(memory).second;
    count_.store(memory_.size(), std::memory_order_relaxed);
    return is_new;
  }
  // False when it is not lent.
  bool give_back(void* memory) {
    if (count_.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard lock(mutex_);
    const bool was_lent = memory_.erase(memory) > 0;
    count_.store(memory_.size(), std::memory_order_relaxed);
    return was_lent;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<void*> memory_;
  std::atomic<size_t> count_{0};
};

// After a call that threw, the memory may be freed when it is not lent any more: that frees nothing.
void give_back(void* memory) { Lent::get().give_back(memory); }

// Strides of dimensions of size 1 do not matter.
bool is_in_place(const at::Tensor& value, const at::Tensor& result) {
  if (value.const_data_ptr() != result.const_data_ptr()) return false;
  for (int64_t i = 0; i < result.dim(); ++i) {
    if (result.size(i) > 1 && value.stride(i) != result.stride(i)) return false;
  }
  return value.scalar_type() == result.scalar_type();
}

}  // namespace

class LendingAllocator final : public c10::Allocator {
 public:
  explicit LendingAllocator(c10::Allocator* base) : base_(base) {}

  c10::DataPtr allocate(size_t size_bytes) override {
    if (current != nullptr) [[unlikely]] {
      if (void* memory = current->lend(size_bytes)) return {memory, memory, &give_back, c10::Device(c10::kCPU)};
    }
    c10::DataPtr data = base_->allocate(size_bytes);
    const bool is_replaced = data.compare_exchange_deleter(base_deleter, &delete_any);
    TORCH_INTERNAL_ASSERT(is_replaced, "the CPU's allocator has two ways to free");
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return &delete_any; }
  void copy_data(void* to, const void* from, size_t count) const override { default_copy_data(to, from, count); }

  static void install() {
    static LendingAllocator* const installed = [] {
      auto* allocator = new LendingAllocator(c10::GetCPUAllocator());
      base_deleter = allocator->base_->raw_deleter();
      if (base_deleter != nullptr) c10::SetCPUAllocator(allocator, std::numeric_limits<uint8_t>::max());
      return allocator;
    }();
    (void)installed;
  }

 private:
  static void delete_any(void* memory) {
    if (!Lent::get().give_back(memory)) base_deleter(memory);
  }

  static inline c10::DeleterFnPtr base_deleter = nullptr;
  c10::Allocator* base_;
};

void ResultMemory::prepare() { LendingAllocator::install(); }

ResultMemory::ResultMemory(const std::vector<at::Tensor>& results, int num_skipped)
    : results_(results), num_skipped_(num_skipped), outer_(current) {
  for (const at::Tensor& result : results) {
    if (!result.defined() || !result.is_non_overlapping_and_dense()) continue;
    void* memory = result.mutable_data_ptr();
    const size_t size_bytes = result.nbytes();
    if (size_bytes < kMinBytes || reinterpret_cast<uintptr_t>(memory) % c10::gAlignment != 0) continue;
    offers_.push_back({memory, size_bytes});
  }
  current = this;
}

ResultMemory::~ResultMemory() {
  current = outer_;
  for (const Offer& offer : offers_) give_back(offer.memory);
}

void* ResultMemory::lend(size_t size_bytes) {
  for (const Offer& offer : offers_) {
    if (offer.size_bytes != size_bytes) continue;
    if (num_skipped_-- > 0) return nullptr;
    if (Lent::get().lend(offer.memory)) return offer.memory;
  }
  return nullptr;
}

bool ResultMemory::lies_in_offer(const at::Tensor& tensor) const {
  const void* memory = tensor.storage().data();
  return std::any_of(offers_.begin(), offers_.end(), [&](const Offer& offer) { return offer.memory == memory; });
}

void ResultMemory::write(std::vector<at::Tensor> values) {
  current = outer_;  // copies want no result's memory
  for (size_t i = 0; i < values.size(); ++i) {
    if (!results_[i].defined()) {
      values[i].reset();
      continue;
    }
    TORCH_CHECK(values[i].defined() && values[i].sizes() == results_[i].sizes(), "host call: result ", i,
                " has other sizes than when the call was recorded");
    if (!is_in_place(values[i], results_[i]) && lies_in_offer(values[i])) {
      values[i] = values[i].clone();
    }
  }
  static Counter& copied_bytes = counter("HostCallCopiedBytes");
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].defined() || is_in_place(values[i], results_[i])) continue;
    results_[i].copy_(values[i]);
    if (results_[i].nbytes() >= kMinBytes) copied_bytes.add(static_cast<int64_t>(results_[i].nbytes()));
  }
  values.clear();
  for (const Offer& offer : offers_) {
    TORCH_CHECK(!Lent::get().give_back(offer.memory), "host call: the kernel has kept a tensor of ", offer.size_bytes,
                " bytes that lies in the memory of a result");
  }
}

}  // namespace torch_pjrt
