#include "torch/call_signature.h"

#include "ops/aten_call.h"
#include "torch/scalar_type.h"
#include "torch/storage.h"

namespace torch_pjrt {
namespace {

using Kind = ArgumentRule::Kind;

bool is_aten_call(const lazy::Signature& signature) { return torch_pjrt::is_aten_call(*signature.entry); }

lazy::ScalarKind scalar_kind(c10::ScalarType type) {
  if (c10::isComplexType(type)) return lazy::ScalarKind::kComplex;
  if (c10::isFloatingType(type)) return lazy::ScalarKind::kDouble;
  return type == c10::ScalarType::Bool ? lazy::ScalarKind::kBool : lazy::ScalarKind::kInt;
}

lazy::TensorRef add_tensor(lazy::Signature& signature, const at::Tensor& tensor, bool is_unread) {
  lazy::TensorRef ref;
  if (!tensor.defined()) return ref;
  ref.dtype = to_dtype(tensor.scalar_type());
  if (is_unread) return ref;
  ref.is_wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  if (is_xla(tensor)) {
    ref.source = lazy::TensorRef::Source::kOperand;
    ref.index = static_cast<uint32_t>(signature.operands.size());
    signature.operands.push_back({ref.dtype, {tensor.sizes().begin(), tensor.sizes().end()}});
    if (is_aten_call(signature)) {
      signature.operand_strides.emplace_back(tensor.strides().begin(), tensor.strides().end());
    }
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

lazy::Attribute ignored_attribute(const c10::IValue& value) {
  if (value.isBool()) return false;
  return value.isInt() ? lazy::Attribute(value.toInt()) : lazy::Attribute();
}

lazy::ScalarKind scalar_kind(const c10::IValue& value) {
  if (value.isBool()) return lazy::ScalarKind::kBool;
  if (value.isInt()) return lazy::ScalarKind::kInt;
  return value.isComplexDouble() ? lazy::ScalarKind::kComplex : lazy::ScalarKind::kDouble;
}

}  // namespace

lazy::ScalarRef add_slot(lazy::Signature& signature, lazy::ScalarKind kind) {
  const lazy::ScalarRef ref{kind, static_cast<uint32_t>(signature.slot_is_int.size())};
  const bool is_int = kind == lazy::ScalarKind::kBool || kind == lazy::ScalarKind::kInt;
  signature.slot_is_int.push_back(is_int);
  if (kind == lazy::ScalarKind::kComplex) signature.slot_is_int.push_back(false);
  return ref;
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
    case Kind::kIgnored:
      // A kernel wants what is not None: the number of a layout or memory format. The device is its own.
      if (is_aten_call(signature)) argument.attribute = ignored_attribute(value);
      break;
    case Kind::kGenerator:
      break;
  }
  return argument;
}

}  // namespace torch_pjrt
