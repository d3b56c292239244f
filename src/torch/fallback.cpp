#include <ATen/native/CPUFallback.h>
#include <c10/util/Exception.h>

#include <mutex>
#include <unordered_set>
#include <utility>

#include "base/env.h"
#include "torch/map_tensors.h"
#include "torch/op_info.h"
#include "torch/recorder.h"
#include "torch/stand_ins.h"
#include "torch/statistics.h"

namespace torch_pjrt {
namespace {

void warn_once(const std::string& name, const std::string& reason) {
  static const bool is_asked = env_flag("PT_XLA_DEBUG", false);
  if (!is_asked) return;
  static auto* mutex = new std::mutex();
  static auto* seen = new std::unordered_set<std::string>();
  const std::lock_guard lock(*mutex);
  if (seen->insert(name).second) TORCH_WARN(name, " runs on the CPU: ", reason);
}

thread_local std::string fallback_name;

// Names the operator for the cuts that reading its arguments causes.
class FallbackScope {
 public:
  explicit FallbackScope(std::string name) : outer_(std::exchange(fallback_name, std::move(name))) {}
  FallbackScope(const FallbackScope&) = delete;
  FallbackScope& operator=(const FallbackScope&) = delete;
  ~FallbackScope() { fallback_name = std::move(outer_); }

 private:
  std::string outer_;
};

void write_back(const at::Tensor& tensor, const at::Tensor& copy) {
  if (!tensor.defined()) return;
  if (tensor.sizes() == copy.sizes()) {
    whole_storage(tensor).copy_(whole_storage(copy));
  } else {  // an out= tensor
    tensor.resize_(copy.sizes()).copy_(copy);
  }
}

}  // namespace

std::string_view running_fallback() { return fallback_name; }

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason) {
  const std::string name = base_name(op.schema().name());
  warn_once(name, reason);
  const FallbackScope scope(name);
  at::native::cpu_fallback(op, stack);
  count(name);
}

void run_on_storages(const c10::OperatorHandle& op, const OpInfo& info, torch::jit::Stack* stack,
                     const std::string& reason) {
  const std::string name = base_name(op.schema().name());
  warn_once(name, reason);
  const FallbackScope scope(name);
  const std::vector<c10::IValue> arguments = torch::jit::pop(*stack, info.arguments.size());
  const torch::jit::Stack copies = StandIns(info, StandIns::Kind::kCopy).make(arguments);
  torch::jit::Stack results = copies;
  c10::Device device(c10::DeviceType::XLA, 0);
  op.callBoxed(&results);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!info.arguments[i].is_mutated) continue;
    std::vector<at::Tensor> written;
    map_tensors(copies[i], [&](const at::Tensor& tensor) { return written.emplace_back(tensor); });
    auto next = written.begin();
    map_tensors(arguments[i], [&](const at::Tensor& tensor) {
      if (tensor.defined()) device = tensor.device();
      write_back(tensor, *next++);
      return tensor;
    });
  }
  for (size_t i = 0; i < info.returns.size(); ++i) {
    const bool is_argument = info.returns[i].kind == ReturnRule::Kind::kArgument;
    stack->push_back(is_argument ? arguments[info.returns[i].argument]
                                 : map_tensors(results[i], [&](const at::Tensor& tensor) {
                                     return tensor.defined() ? tensor.to(device) : tensor;
                                   }));
  }
  count(name);
}

}  // namespace torch_pjrt
