#include <ATen/native/CPUFallback.h>
#include <c10/util/Exception.h>

#include <mutex>
#include <unordered_set>
#include <utility>

#include "base/env.h"
#include "torch/op_info.h"
#include "torch/recorder.h"
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

}  // namespace

std::string_view running_fallback() { return fallback_name; }

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason) {
  const std::string name = base_name(op.schema().name());
  warn_once(name, reason);
  const FallbackScope scope(name);
  at::native::cpu_fallback(op, stack);
  count(name);
}

}  // namespace torch_pjrt
