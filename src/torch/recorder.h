// The boxed kernel that records an ATen operator: one for every operator that has a lowering, the backend fallback for
// the rest.
#pragma once

#include <ATen/core/boxing/BoxedKernel.h>
#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "torch/call_plan.h"
#include "torch/op_info.h"

namespace torch_pjrt {

// Recorder of one operator overload. Thread safe.
class Recorder final : public c10::OperatorKernel {
 public:
  explicit Recorder(const c10::OperatorHandle& op) : info_(op) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

 private:
  OpInfo info_;
};

// The backend fallback: finds or makes the Recorder of `op`.
void record_any(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Runs `op` on the CPU and brings the results back; counted as "aten::name".
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason);
// Name of the operator that run_on_cpu runs on this thread; empty outside of one.
std::string_view running_fallback();

}  // namespace torch_pjrt
