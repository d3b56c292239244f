// The memoised answer to "what does this operator do with inputs of this kind": output types, how they are returned,
// and whether it can be recorded at all.
#pragma once

#include <ATen/core/stack.h>
#include <c10/util/Exception.h>

#include <optional>
#include <vector>

#include "lazy/buffer.h"
#include "ops/value_check.h"
#include "torch/op_info.h"

namespace torch_pjrt {

struct CallPlan {
  struct Output {
    bool is_contiguous = true;
    c10::ScalarType scalar_type = c10::ScalarType::Float;
    const lazy::Layout* layout = nullptr;
  };

  lazy::Signature signature;
  // Parallel to signature.outputs.
  std::vector<Output> outputs;
  // Number of tensors in each returned list, in order of the schema's list returns.
  std::vector<size_t> list_sizes;
  // Of operands whose elements the caller has given.
  std::vector<OperandCheck> checks;
  // What eager PyTorch warns of at every such call.
  std::vector<c10::Warning> warnings;
  // Why the call cannot be recorded; it then runs on the CPU.
  std::optional<std::string> fallback_reason;
};

// Makes the plan for a call: PyTorch's meta kernel gives types and errors, a trial of the lowering confirms them. Runs
// other operators, perhaps Python ones: call it without the lock. `arguments` are the call's, not consumed.
CallPlan make_plan(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                   Hash128 hash, int device);

// The parts of a plan that follow from a call on stand-ins: results come in the order of the schema, then what mutated
// arguments have become. A layout other than strided is kUnimplemented.
void add_output(CallPlan& plan, const at::Tensor& tensor);
// Gives output `i`, of the same sizes, the strides of `example`, where they are dense.
void follow_strides(CallPlan& plan, size_t i, const at::Tensor& example);
void add_fresh_outputs(CallPlan& plan, const OpInfo& info, c10::ArrayRef<c10::IValue> results);
void add_mutated_outputs(CallPlan& plan, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

}  // namespace torch_pjrt
