// Calls of an operator on stand-ins for its xla tensors, which read none of them: what PyTorch's meta kernel makes of
// their types, and what eager PyTorch on the CPU says to them. They run other operators, perhaps Python ones: call them
// without the lock.
#pragma once

#include <ATen/core/stack.h>
#include <c10/util/Exception.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "torch/op_info.h"

namespace torch_pjrt {

// What PyTorch's meta kernel makes of the arguments.
struct MetaCall {
  // False when PyTorch has none for this operator in this process, or one that needs values and so refused what the CPU
  // takes.
  bool has_kernel = false;
  torch::jit::Stack results;
  torch::jit::Stack arguments;  // the stand-ins: in-place and out= operators change these
};
// Throws what eager PyTorch throws about the arguments, except that some out= tensors have the wrong size.
MetaCall call_meta(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);
// Throws that, too.
void check_out_sizes(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

// Runs the CPU's kernel on zeros of the arguments' types: throws what it throws, or tells whether it took them. False
// when there is no such kernel, or the arguments are too large to ask.
bool cpu_accepts(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);
// What the CPU's kernel says to arguments whose elements all are `value`.
struct Trial {
  enum class Outcome { kTaken, kRefused, kTooLarge };
  Outcome outcome = Outcome::kTooLarge;
  torch::jit::Stack results;
  torch::jit::Stack arguments;  // the stand-ins: in-place and out= operators change these
  std::string refusal;          // the kernel's words
  std::vector<c10::Warning> warnings;
};
// Bounds the time that a first call takes more.
inline constexpr size_t kMaxTrialBytes = size_t{4} << 20;
// NotImplementedError where the CPU has no kernel for these dtypes.
Trial try_on_cpu(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments, int value,
                 size_t max_bytes = kMaxTrialBytes);
// Calls the operator on `stack`, all of it stand-ins, and returns what it warns of; nullopt when it throws.
std::optional<std::vector<c10::Warning>> warnings_of(const c10::OperatorHandle& op, torch::jit::Stack& stack);
// What `function` warns of.
std::vector<c10::Warning> warnings_of(const std::function<void()>& function);
// Throws what eager PyTorch throws about memory that is written and met twice.
void check_overlaps(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);
// Throws what eager PyTorch throws about an out= tensor of a type that the operator does not write.
void check_out_types(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);
// Throws what eager PyTorch throws about an operator in place whose result is larger than its tensor: some meta kernels
// resize. `meta_arguments` are the stand-ins after the meta kernel ran.
void check_inplace_sizes(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                         c10::ArrayRef<c10::IValue> meta_arguments);
// The CPU's results for tensors of the same strides' order with at most two elements a dimension; none when such a call
// means nothing, or fails.
std::vector<at::Tensor> on_shrunk(const c10::OperatorHandle& op, const OpInfo& info,
                                  c10::ArrayRef<c10::IValue> arguments);
// True when the CPU raises NotImplementedError for these dtypes. An operator that the CPU has for float32 works for the
// smaller floats too: accelerators have the kernels that the CPU lacks.
bool cpu_lacks_kernel(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);
// Why the CPU's kernel is to run a call instead: it refuses such arguments whatever their values are (meta kernels let
// much pass, such as operands of different dtypes), or its results are of other dtypes than `results`; nullopt when
// neither is known. `result_bytes` bounds the time, as the arguments' sizes do. NotImplementedError for the smaller
// floats counts for nothing.
std::optional<std::string> objection_of_cpu(const c10::OperatorHandle& op, const OpInfo& info,
                                            c10::ArrayRef<c10::IValue> arguments,
                                            c10::ArrayRef<c10::ScalarType> results, size_t result_bytes);

}  // namespace torch_pjrt
