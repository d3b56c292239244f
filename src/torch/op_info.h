// What the recorder needs to know of one ATen operator overload, worked out once from its schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "lazy/signature.h"
#include "ops/host_kernel.h"
#include "ops/registry.h"

namespace torch_pjrt {

struct ArgumentRule {
  enum class Kind : uint8_t {
    kTensor,      // Tensor, Tensor?
    kTensorList,  // Tensor[], Tensor?[]
    kScalar,      // Scalar, float, and optionals: a run-time input unless `is_static`
    kScalarList,  // Scalar[], float[]
    kDType,       // ScalarType, ScalarType?
    kGenerator,
    kIgnored,  // Layout, Device, MemoryFormat, pin_memory: no part of the computation
    kStatic,   // everything else
  };
  Kind kind = Kind::kStatic;
  bool is_static = true;  // for numbers: a constant of the program
  // A number that is a constant while it has this value, as this type (OpEntry::constant_defaults).
  std::optional<c10::IValue> constant_default;
  bool is_mutated = false;  // written by the operator
  bool is_out = false;      // an out= argument: written, never read
  bool is_unread = false;   // only the type matters

  // Whether a number argument is a constant of the program in a call with this value.
  bool is_constant(const c10::IValue& value) const;
};

struct ReturnRule {
  enum class Kind : uint8_t { kFresh, kFreshList, kArgument };
  Kind kind = Kind::kFresh;
  size_t argument = 0;  // kArgument: which one is returned
};

struct OpInfo {
  std::string name;                // "aten::add"
  const OpEntry* entry = nullptr;  // nullptr: no lowering, always falls back
  lazy::Schema schema;
  std::vector<ArgumentRule> arguments;
  std::vector<ReturnRule> returns;
  Hash128 seed;  // over name and overload
  // Refuses numbers that eager PyTorch refuses (argument_checks.h); nullptr for most operators.
  bool (*accepts)(c10::ArrayRef<c10::IValue> arguments) = nullptr;
  // When PyTorch's kernel is called instead; nullptr for most operators.
  const KernelRule* kernel_rule = nullptr;
  // Index tensors may be on the CPU.
  bool takes_cpu_indices = false;
  // False when the operator returns something that is no tensor.
  bool is_recordable = true;
  // The first argument that is written, out= ones apart.
  std::optional<size_t> first_mutated;
  // Arguments that may lie in one storage: one that is written, and another of tensors.
  std::vector<std::pair<uint32_t, uint32_t>> written_pairs;

  // How the lowering table says to record the operator.
  explicit OpInfo(const c10::OperatorHandle& op);
  // How to record it as a call of PyTorch's own kernel (ops/aten_call.h); `entry` is then one of those in there.
  static OpInfo of_aten_call(const c10::OperatorHandle& op);

 private:
  OpInfo(const c10::OperatorHandle& op, const OpEntry* table_entry, const OpEntry* entry);
};

// "aten::add_" -> "aten::add"; names such as "aten::__iand__" and "aten::_foreach_add_" are treated alike.
std::string base_name(const std::string& name);

}  // namespace torch_pjrt
