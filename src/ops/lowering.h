// The interface that every operator lowering is written against.
//
// A lowering is a function `stablehlo::Values lower_x(LoweringContext& ctx)`: it asks for arguments by their ATen
// schema names, emits StableHLO, and returns one value for each output. One lowering serves the functional, in-place
// and out= forms and all overloads of an ATen operator; ask `ctx.has("dim")` or `ctx.is_tensor("other")` where
// overloads differ.
//
// Outputs are, in order: the schema's returns that are not one of its arguments, then the new values of the mutated
// arguments. For an in-place operator that is the one result, as for the functional form. Dimensions must be those that
// PyTorch's meta kernel gave (ctx.output(i)); the dtype is converted for you when it differs. A lowering that cannot
// handle its arguments calls ctx.decline("reason"): the recorder then falls back, at the call, not later.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lazy/signature.h"
#include "stablehlo/builder.h"

namespace torch_pjrt {

class Promotion;

class LoweringContext {
 public:
  // `scalars` gives the program's value of a scalar slot, a scalar of dtype s64 or f64.
  using ScalarReader = std::function<stablehlo::Value(uint32_t slot)>;

  // `has_outputs` is false in the trial that infers output types for an operator without a meta kernel.
  LoweringContext(stablehlo::Builder& builder, const lazy::Signature& signature, stablehlo::Values operands,
                  ScalarReader scalars, bool has_outputs = true)
      : b(builder),
        signature_(signature),
        operands_(std::move(operands)),
        scalars_(std::move(scalars)),
        has_outputs_(has_outputs) {}

  stablehlo::Builder& b;

  // --- arguments, by schema name; a name that the schema lacks is "not there" ---------------------------------------
  // True when the argument exists and is not None.
  bool has(std::string_view name) const;
  // True when the argument is a tensor (an xla tensor or a CPU scalar tensor), not a Python number.
  bool is_tensor(std::string_view name) const;

  // A tensor argument with its own dtype and dims. kInternal when missing.
  stablehlo::Value tensor(std::string_view name) const;
  // The dtype of a tensor argument, or of item `i` of a list; nullopt for numbers.
  std::optional<DType> tensor_dtype(std::string_view name, size_t i = 0) const;
  std::optional<stablehlo::Value> optional_tensor(std::string_view name) const;
  stablehlo::Values tensors(std::string_view name) const;
  std::vector<std::optional<stablehlo::Value>> optional_tensors(std::string_view name) const;

  // A tensor or number argument converted to `dtype`; a number is 0-dim. Complex numbers work when dtype is complex.
  stablehlo::Value operand(std::string_view name, DType dtype) const;
  // The same for item `i` of a tensor list or number list.
  stablehlo::Value operand(std::string_view name, size_t i, DType dtype) const;
  // Number of items of a list argument.
  size_t size(std::string_view name) const;
  // A number argument (dynamic or static) as a 0-dim value, or `fallback` as a constant when missing.
  stablehlo::Value number(std::string_view name, DType dtype, double fallback) const;

  // Static attributes. The form without fallback is kInternal when missing; a dynamic scalar is kInternal: list the
  // name in OpEntry::static_args.
  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t fallback) const;
  double real(std::string_view name) const;
  double real(std::string_view name, double fallback) const;
  bool flag(std::string_view name, bool fallback = false) const;
  Dims ints(std::string_view name) const;  // an int is a list of one; missing is empty
  std::vector<bool> bools(std::string_view name) const;
  std::string string(std::string_view name, std::string_view fallback = "") const;
  std::optional<DType> dtype(std::string_view name) const;
  // The static value of a number, when it is one: lets a lowering special-case alpha == 1 or exponent == 2.
  std::optional<double> static_number(std::string_view name) const;

  // --- PyTorch's type promotion
  // --------------------------------------------------------------------------------------- torch.result_type over
  // these arguments (tensors, 0-dim tensors, numbers; lists contribute every item).
  DType result_type(std::initializer_list<std::string_view> names) const;
  // The same for one item of an operator over lists: a list of several contributes item `i` only.
  DType item_result_type(std::initializer_list<std::string_view> names, size_t i) const;

  // --- outputs
  // --------------------------------------------------------------------------------------------------------
  size_t num_outputs() const { return signature_.outputs.size(); }
  bool has_outputs() const { return has_outputs_; }
  const TensorType& output(size_t i = 0) const;

  // --- random operators (OpEntry::random)
  // ------------------------------------------------------------------------------- Scalars ui64: the generator's seed,
  // and the offset where this call's numbers begin.
  stablehlo::Value seed() const;
  stablehlo::Value offset() const;

  // --- for what is written over all operators
  const lazy::Signature& signature() const { return signature_; }
  // The value of an operand or a CPU scalar, with its own dtype. kInternal for None.
  stablehlo::Value read(const lazy::TensorRef& ref) const;
  stablehlo::Value read(const lazy::ScalarRef& ref, DType dtype) const;

  std::string_view name() const { return signature_.schema->name; }
  std::string_view overload() const { return signature_.schema->overload; }
  // Not lowered for these arguments.
  template <typename... Args>
  [[noreturn]] void decline(const Args&... reason) const {
    throw_error(ErrorCode::kUnimplemented, name(), ": ", reason...);
  }

 private:
  const lazy::Argument* find(std::string_view name) const;
  void add_to(Promotion& promotion, std::string_view name, std::optional<size_t> item) const;

  const lazy::Signature& signature_;
  stablehlo::Values operands_;
  ScalarReader scalars_;
  bool has_outputs_;
};

using Lowering = stablehlo::Values (*)(LoweringContext& ctx);

}  // namespace torch_pjrt
