#include "torch/call_plan.h"

#include <stdexcept>

#include "base/env.h"
#include "exec/lower.h"
#include "torch/memory_format.h"
#include "torch/scalar_type.h"
#include "torch/statistics.h"
#include "torch/storage.h"
#include "torch/trial_call.h"

namespace torch_pjrt {
namespace {

using Kind = ArgumentRule::Kind;

// --- the signature's arguments
// -------------------------------------------------------------------------------------------

lazy::ScalarKind scalar_kind(c10::ScalarType type) {
  if (c10::isComplexType(type)) return lazy::ScalarKind::kComplex;
  if (c10::isFloatingType(type)) return lazy::ScalarKind::kDouble;
  return type == c10::ScalarType::Bool ? lazy::ScalarKind::kBool : lazy::ScalarKind::kInt;
}

lazy::ScalarRef add_slot(lazy::Signature& signature, lazy::ScalarKind kind) {
  const lazy::ScalarRef ref{kind, static_cast<uint32_t>(signature.slot_is_int.size())};
  const bool is_int = kind == lazy::ScalarKind::kBool || kind == lazy::ScalarKind::kInt;
  signature.slot_is_int.push_back(is_int);
  if (kind == lazy::ScalarKind::kComplex) signature.slot_is_int.push_back(false);
  return ref;
}

lazy::TensorRef add_tensor(lazy::Signature& signature, const at::Tensor& tensor, bool is_unread) {
  lazy::TensorRef ref;
  if (!tensor.defined() || is_unread) return ref;
  ref.dtype = to_dtype(tensor.scalar_type());
  ref.is_wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  if (is_xla(tensor)) {
    ref.source = lazy::TensorRef::Source::kOperand;
    ref.index = static_cast<uint32_t>(signature.operands.size());
    signature.operands.push_back({ref.dtype, {tensor.sizes().begin(), tensor.sizes().end()}});
  } else {
    ref.source = lazy::TensorRef::Source::kScalar;
    ref.scalar = add_slot(signature, scalar_kind(tensor.scalar_type()));
  }
  return ref;
}

lazy::Attribute number_attribute(const c10::IValue& value) {
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isBool()) return value.toBool();
  if (value.isComplexDouble()) {
    const auto number = value.toComplexDouble();
    return std::complex<double>(number.real(), number.imag());
  }
  return std::monostate();
}

lazy::Attribute list_attribute(const c10::IValue& value) {
  if (value.isIntList()) return Dims(value.toIntVector());
  if (value.isDoubleList()) return value.toDoubleVector();
  if (value.isBoolList()) {
    const auto list = value.toBoolList();
    return std::vector<bool>(list.begin(), list.end());
  }
  if (value.isNone()) return std::monostate();
  // Scalar[]: of numbers, or int[] holding symbolic wrappers.
  std::vector<double> numbers;
  Dims integers;
  for (const c10::IValue& item : value.toListRef()) {
    if (item.isInt()) integers.push_back(item.toInt());
    numbers.push_back(item.isInt() ? static_cast<double>(item.toInt()) : item.toScalar().toDouble());
  }
  if (integers.size() == numbers.size()) return integers;
  return numbers;
}

lazy::Attribute static_attribute(const c10::IValue& value) {
  if (value.isString()) return value.toStringRef();
  if (value.isList()) return list_attribute(value);
  return number_attribute(value);
}

lazy::ScalarKind scalar_kind(const c10::IValue& value) {
  if (value.isBool()) return lazy::ScalarKind::kBool;
  if (value.isInt()) return lazy::ScalarKind::kInt;
  return value.isComplexDouble() ? lazy::ScalarKind::kComplex : lazy::ScalarKind::kDouble;
}

lazy::Argument make_argument(lazy::Signature& signature, const ArgumentRule& rule, const c10::IValue& value) {
  lazy::Argument argument;
  switch (rule.kind) {
    case Kind::kTensor:
      argument.kind = lazy::Argument::Kind::kTensor;
      argument.tensors.push_back(
          add_tensor(signature, value.isNone() ? at::Tensor() : value.toTensor(), rule.is_unread));
      break;
    case Kind::kTensorList:
      argument.kind = lazy::Argument::Kind::kTensorList;
      if (value.isNone()) break;
      for (const c10::IValue& item : value.toListRef()) {
        argument.tensors.push_back(
            add_tensor(signature, item.isNone() ? at::Tensor() : item.toTensor(), rule.is_unread));
      }
      break;
    case Kind::kScalar:
      if (rule.is_constant(value) || value.isNone()) {
        argument.attribute = number_attribute(value);
        break;
      }
      argument.kind = lazy::Argument::Kind::kScalar;
      argument.scalars.push_back(add_slot(signature, scalar_kind(value)));
      break;
    case Kind::kScalarList:
      if (rule.is_constant(value) || value.isNone()) {
        argument.attribute = list_attribute(value);
        break;
      }
      argument.kind = lazy::Argument::Kind::kScalarList;
      for (const c10::IValue& item : value.toListRef()) {
        argument.scalars.push_back(add_slot(signature, scalar_kind(item)));
      }
      break;
    case Kind::kDType:
      if (!value.isNone()) argument.attribute = to_dtype(value.toScalarType());
      break;
    case Kind::kStatic:
      argument.attribute = static_attribute(value);
      break;
    case Kind::kGenerator:
    case Kind::kIgnored:
      break;
  }
  return argument;
}

// --- outputs
// ----------------------------------------------------------------------------------------------------------------

void add_output(CallPlan& plan, const at::Tensor& tensor) {
  CallPlan::Output output;
  lazy::OutputSpec spec;
  spec.is_defined = tensor.defined();
  if (tensor.defined()) {
    output.scalar_type = tensor.scalar_type();
    spec.type = {to_dtype(tensor.scalar_type()), {tensor.sizes().begin(), tensor.sizes().end()}};
    output.is_contiguous = tensor.is_contiguous() || !tensor.is_non_overlapping_and_dense();
    spec.strides = output.is_contiguous ? row_major_strides(spec.type.dims)
                                        : Dims(tensor.strides().begin(), tensor.strides().end());
    if (!output.is_contiguous) output.layout = lazy::intern_layout(spec.type.dims, spec.strides);
  }
  plan.outputs.push_back(output);
  plan.signature.outputs.push_back(std::move(spec));
}

void add_mutated_outputs(CallPlan& plan, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!info.arguments[i].is_mutated) continue;
    const c10::IValue& value = arguments[i];
    if (info.arguments[i].kind == Kind::kTensorList) {
      for (const at::Tensor& tensor : value.toTensorVector()) add_output(plan, tensor);
    } else {
      add_output(plan, value.isNone() ? at::Tensor() : value.toTensor());
    }
  }
}

void add_fresh_outputs(CallPlan& plan, const OpInfo& info, c10::ArrayRef<c10::IValue> results) {
  for (size_t i = 0; i < info.returns.size(); ++i) {
    if (info.returns[i].kind == ReturnRule::Kind::kFresh) {
      add_output(plan, results[i].isNone() ? at::Tensor() : results[i].toTensor());
    } else if (info.returns[i].kind == ReturnRule::Kind::kFreshList) {
      const auto tensors = results[i].toTensorVector();
      for (const at::Tensor& tensor : tensors) add_output(plan, tensor);
      plan.list_sizes.push_back(tensors.size());
    }
  }
}

// No meta kernel: the lowering's own types, row-major.
void infer_outputs_by_lowering(CallPlan& plan, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  const auto trial = try_lowering(plan.signature, /*has_outputs=*/false);
  size_t next = 0;
  for (const ReturnRule& rule : info.returns) {
    TP_USER_CHECK(rule.kind != ReturnRule::Kind::kFreshList, kUnimplemented, info.name,
                  ": returns a list and PyTorch has no meta kernel for it");
    if (rule.kind != ReturnRule::Kind::kFresh) continue;
    const TrialOutput& output = trial.at(next++);
    CallPlan::Output planned;
    planned.scalar_type = to_scalar_type(output.type.dtype);
    plan.outputs.push_back(planned);
    plan.signature.outputs.push_back({output.type, row_major_strides(output.type.dims), output.is_defined});
  }
  add_mutated_outputs(plan, info, arguments);
}

void confirm_by_lowering(CallPlan& plan) {
  const auto trial = try_lowering(plan.signature, /*has_outputs=*/true);
  for (size_t i = 0; i < trial.size(); ++i) {
    lazy::OutputSpec& spec = plan.signature.outputs[i];
    spec.is_defined = spec.is_defined && trial[i].is_defined;
  }
}

// Fresh results get the strides of the CPU's kernel.
void follow_cpu_strides(CallPlan& plan, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < info.returns.size() && info.returns[i].kind == ReturnRule::Kind::kFresh; ++i) {
    lazy::OutputSpec& spec = plan.signature.outputs[i];
    if (!spec.is_defined) continue;
    auto strides = cpu_strides(info.name, arguments, i, spec.type.dims);
    if (!strides) continue;
    spec.strides = std::move(*strides);
    CallPlan::Output& output = plan.outputs[i];
    output.is_contiguous = spec.strides == row_major_strides(spec.type.dims);
    output.layout = output.is_contiguous ? nullptr : lazy::intern_layout(spec.type.dims, spec.strides);
  }
}

void plan_outputs(CallPlan& plan, const c10::OperatorHandle& op, const OpInfo& info,
                  c10::ArrayRef<c10::IValue> arguments) {
  torch::jit::Stack stack = on_meta(info, arguments);
  const torch::jit::Stack meta_arguments = stack;  // in-place and out= operators change these
  if (run_meta(op, info, arguments, stack)) {
    add_fresh_outputs(plan, info, stack);
    add_mutated_outputs(plan, info, meta_arguments);
  } else {
    infer_outputs_by_lowering(plan, info, arguments);
  }
  follow_cpu_strides(plan, info, arguments);
}

}  // namespace

CallPlan make_plan(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                   Hash128 hash, int device) {
  // A lowering that is wrong must not be met at the cut: the call runs on the CPU instead, and is counted. Developers
  // ask for the error.
  static const bool is_strict = env_flag("TORCH_PJRT_STRICT", false);
  CallPlan plan;
  plan.signature.schema = &info.schema;
  plan.signature.entry = info.entry;
  plan.signature.hash = hash;
  if (!info.is_recordable) {
    plan.fallback_reason = "returns something other than tensors";
    return plan;
  }
  check_overlaps(op, info, arguments);
  try {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (info.arguments[i].is_out) break;  // out= arguments come last and are outputs only
      plan.signature.arguments.push_back(make_argument(plan.signature, info.arguments[i], arguments[i]));
    }
    if (info.entry->random) {
      add_slot(plan.signature, lazy::ScalarKind::kInt);
      add_slot(plan.signature, lazy::ScalarKind::kInt);
    }
    plan_outputs(plan, op, info, arguments);
    confirm_by_lowering(plan);
    if (cpu_lacks_kernel(op, info, arguments)) plan.fallback_reason = "the CPU has no kernel for these dtypes";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal && is_strict) throw;
    if (error.code() == ErrorCode::kInternal) count("LoweringError::" + info.name);
    plan.fallback_reason = error.what();
  } catch (const std::out_of_range& error) {
    if (is_strict) throw;
    count("LoweringError::" + info.name);
    plan.fallback_reason = error.what();
  }
  return plan;
}

}  // namespace torch_pjrt
