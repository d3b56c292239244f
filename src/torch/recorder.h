// The boxed kernel that records an ATen operator: one for every operator that has a lowering, the backend fallback for
// the rest.
#pragma once

#include <ATen/core/boxing/BoxedKernel.h>
#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>
#include <mutex>

#include "exec/statistics.h"
#include "torch/call_plan.h"
#include "torch/op_info.h"

namespace torch_pjrt {

// Recorder of one operator overload. Thread safe.
class Recorder final : public c10::OperatorKernel {
 public:
  explicit Recorder(const c10::OperatorHandle& op) : info_(op) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

 private:
  // Records the call as `info` says and replaces the arguments by the results; else tells why not.
  std::optional<std::string> try_record(const c10::OperatorHandle& op, const OpInfo& info, torch::jit::Stack& stack);
  // Calls PyTorch's kernel, in the program where that can be.
  void call_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason);
  // nullptr for an operator whose kernel cannot be called in a program.
  const OpInfo* aten_call(const c10::OperatorHandle& op);

  OpInfo info_;
  std::once_flag aten_call_made_;
  std::unique_ptr<OpInfo> aten_call_;
  Counter* num_aten_calls_ = nullptr;
};

// The backend fallback: finds or makes the Recorder of `op`.
void record_any(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Runs `op` on the CPU and brings the results back; counted as "aten::name".
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason);
// The same on copies of the arguments' storages: elements that lie in one place do so there.
void run_on_storages(const c10::OperatorHandle& op, const OpInfo& info, torch::jit::Stack* stack,
                     const std::string& reason);
// Name of the operator that run_on_cpu runs on this thread; empty outside of one.
std::string_view running_fallback();

}  // namespace torch_pjrt
