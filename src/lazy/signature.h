// What one recorded operator call looks like, without its run-time inputs: shared by every node of the same kind.
//
// A signature holds the operator, how its arguments are laid out, the static attributes, the operand types and the
// output types. It is made once (with PyTorch's meta kernel and a trial lowering) and memoised; a node then carries
// only a pointer to it, its operands and its scalar slots.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "base/tensor_type.h"

namespace torch_pjrt {

struct OpEntry;  // src/ops/registry.h

namespace lazy {

// A static attribute. kNone (monostate) is Python's None.
using Attribute = std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, DType, Dims,
                               std::vector<double>, std::vector<bool>>;

// The category that a Python number or CPU scalar has in PyTorch's type promotion.
enum class ScalarKind : uint8_t { kBool, kInt, kDouble, kComplex };

// A run-time scalar input: one 64-bit slot (int64 or double), two doubles when complex.
struct ScalarRef {
  ScalarKind kind = ScalarKind::kDouble;
  uint32_t slot = 0;
};

// A tensor argument, or one item of a tensor list.
struct TensorRef {
  enum class Source : uint8_t {
    kNone,     // None, or an undefined tensor
    kOperand,  // operand `index` of the node
    kScalar,   // a CPU tensor of no dimensions: its value is in `scalar`
  };
  Source source = Source::kNone;
  uint32_t index = 0;
  ScalarRef scalar;
  DType dtype = DType::kF32;  // the tensor's own dtype
  bool is_wrapped_number = false;
};

struct Argument {
  enum class Kind : uint8_t { kAttribute, kTensor, kTensorList, kScalar, kScalarList };
  Kind kind = Kind::kAttribute;
  Attribute attribute;             // kAttribute
  std::vector<TensorRef> tensors;  // kTensor (one), kTensorList
  std::vector<ScalarRef> scalars;  // kScalar (one), kScalarList
};

struct OutputSpec {
  TensorType type;
  Dims strides;            // in elements; dense and non-overlapping
  bool is_defined = true;  // false for a result that this call does not produce (a gradient not asked for)
};

// Names of an operator's arguments; one for each overload, alive for the process.
struct Schema {
  std::string name;      // "aten::add": no overload, no in-place underscore
  std::string overload;  // "Tensor"
  std::vector<std::string> argument_names;
  std::string operator_name;  // "aten::add_.Tensor"
  // What the operator does with each tensor argument; parallel to argument_names.
  enum class Use : uint8_t { kRead, kUpdate, kOut };
  std::vector<Use> uses;
};

struct Signature {
  const Schema* schema = nullptr;
  const OpEntry* entry = nullptr;
  std::vector<Argument> arguments;  // parallel to schema->argument_names
  std::vector<TensorType> operands;
  // For each scalar slot whether it holds an int64 (else a double).
  std::vector<bool> slot_is_int;
  std::vector<OutputSpec> outputs;
  // Only of a call of PyTorch's own kernel (ops/aten_call.h): strides of the operands as the caller has them.
  std::vector<Dims> operand_strides;
  Hash128 hash;  // over all of the above
};

}  // namespace lazy
}  // namespace torch_pjrt
