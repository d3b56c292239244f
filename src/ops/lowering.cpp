#include "ops/lowering.h"

#include <algorithm>
#include <variant>

#include "ops/promotion.h"

namespace torch_pjrt {

using lazy::Argument;
using lazy::ScalarKind;
using lazy::ScalarRef;
using lazy::TensorRef;
using stablehlo::Value;
using stablehlo::Values;

namespace {

bool is_none(const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::kAttribute:
      return std::holds_alternative<std::monostate>(argument.attribute);
    case Argument::Kind::kTensor:
      return argument.tensors[0].source == TensorRef::Source::kNone;
    default:
      return false;
  }
}

}  // namespace

const Argument* LoweringContext::find(std::string_view name) const {
  const auto& names = signature_.schema->argument_names;
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return nullptr;
  const auto index = static_cast<size_t>(it - names.begin());
  // Trailing out= arguments are not part of the signature.
  return index < signature_.arguments.size() ? &signature_.arguments[index] : nullptr;
}

bool LoweringContext::has(std::string_view name) const {
  const Argument* argument = find(name);
  return argument != nullptr && !is_none(*argument);
}

bool LoweringContext::is_tensor(std::string_view name) const {
  const Argument* argument = find(name);
  return argument != nullptr && argument->kind == Argument::Kind::kTensor && !is_none(*argument);
}

Value LoweringContext::read(const ScalarRef& ref, DType dtype) const {
  const Value first = scalars_(ref.slot);
  if (ref.kind != ScalarKind::kComplex) {
    return ref.kind == ScalarKind::kBool ? b.convert(b.convert(first, DType::kPred), dtype) : b.convert(first, dtype);
  }
  if (!is_complex(dtype)) return b.convert(first, dtype);
  const DType part = real_dtype(dtype);
  return b.complex(b.convert(first, part), b.convert(scalars_(ref.slot + 1), part));
}

Value LoweringContext::read(const TensorRef& ref) const {
  if (ref.source == TensorRef::Source::kScalar) return read(ref.scalar, ref.dtype);
  TP_CHECK(ref.source == TensorRef::Source::kOperand, name(), ": tensor argument is None");
  return operands_.at(ref.index);
}

Value LoweringContext::tensor(std::string_view name) const {
  const Argument* argument = find(name);
  TP_CHECK(argument != nullptr && argument->kind == Argument::Kind::kTensor, this->name(), ": no tensor argument ",
           name);
  return read(argument->tensors[0]);
}

std::optional<DType> LoweringContext::tensor_dtype(std::string_view name, size_t i) const {
  const Argument* argument = find(name);
  if (argument == nullptr || is_none(*argument) || i >= argument->tensors.size()) return std::nullopt;
  return argument->tensors[i].dtype;
}

std::optional<Value> LoweringContext::optional_tensor(std::string_view name) const {
  if (!is_tensor(name)) return std::nullopt;
  return tensor(name);
}

std::vector<std::optional<Value>> LoweringContext::optional_tensors(std::string_view name) const {
  const Argument* argument = find(name);
  TP_CHECK(argument != nullptr && argument->kind == Argument::Kind::kTensorList, this->name(), ": no tensor list ",
           name);
  std::vector<std::optional<Value>> values;
  for (const TensorRef& ref : argument->tensors) {
    values.push_back(ref.source == TensorRef::Source::kNone ? std::nullopt : std::optional(read(ref)));
  }
  return values;
}

Values LoweringContext::tensors(std::string_view name) const {
  Values values;
  for (const auto& value : optional_tensors(name)) {
    TP_CHECK(value.has_value(), this->name(), ": None in tensor list ", name);
    values.push_back(*value);
  }
  return values;
}

size_t LoweringContext::size(std::string_view name) const {
  const Argument* argument = find(name);
  TP_CHECK(argument != nullptr, this->name(), ": no argument ", name);
  switch (argument->kind) {
    case Argument::Kind::kAttribute:
      if (const auto* list = std::get_if<std::vector<double>>(&argument->attribute)) return list->size();
      if (const auto* list = std::get_if<Dims>(&argument->attribute)) return list->size();
      return is_none(*argument) ? 0 : 1;
    case Argument::Kind::kTensor:
    case Argument::Kind::kTensorList:
      return argument->tensors.size();
    case Argument::Kind::kScalar:
    case Argument::Kind::kScalarList:
      return argument->scalars.size();
  }
  return 0;
}

Value LoweringContext::operand(std::string_view name, DType dtype) const { return operand(name, 0, dtype); }

Value LoweringContext::operand(std::string_view name, size_t i, DType dtype) const {
  const Argument* argument = find(name);
  TP_CHECK(argument != nullptr && !is_none(*argument), this->name(), ": no operand ", name);
  switch (argument->kind) {
    case Argument::Kind::kTensor:
    case Argument::Kind::kTensorList:
      return b.convert(read(argument->tensors.at(i)), dtype);
    case Argument::Kind::kScalar:
    case Argument::Kind::kScalarList:
      return read(argument->scalars.at(i), dtype);
    case Argument::Kind::kAttribute:
      break;
  }
  const auto& attribute = argument->attribute;
  if (const auto* value = std::get_if<bool>(&attribute)) return b.constant(*value, dtype);
  if (const auto* value = std::get_if<int64_t>(&attribute)) return b.constant(*value, dtype);
  if (const auto* value = std::get_if<double>(&attribute)) return b.constant(*value, dtype);
  if (const auto* value = std::get_if<std::complex<double>>(&attribute)) return b.constant(*value, dtype);
  if (const auto* list = std::get_if<std::vector<double>>(&attribute)) return b.constant(list->at(i), dtype);
  if (const auto* list = std::get_if<Dims>(&attribute)) return b.constant(list->at(i), dtype);
  TP_CHECK(false, this->name(), ": argument ", name, " is not a number");
}

Value LoweringContext::number(std::string_view name, DType dtype, double fallback) const {
  return has(name) ? operand(name, dtype) : b.constant(fallback, dtype);
}

std::optional<double> LoweringContext::static_number(std::string_view name) const {
  const Argument* argument = find(name);
  if (argument == nullptr || argument->kind != Argument::Kind::kAttribute) return std::nullopt;
  if (const auto* value = std::get_if<double>(&argument->attribute)) return *value;
  if (const auto* value = std::get_if<int64_t>(&argument->attribute)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<bool>(&argument->attribute)) return *value ? 1.0 : 0.0;
  return std::nullopt;
}

int64_t LoweringContext::integer(std::string_view name) const {
  const Argument* argument = find(name);
  TP_CHECK(argument != nullptr && argument->kind == Argument::Kind::kAttribute, this->name(), ": no static integer ",
           name);
  if (const auto* value = std::get_if<int64_t>(&argument->attribute)) return *value;
  if (const auto* value = std::get_if<bool>(&argument->attribute)) return *value;
  TP_CHECK(false, this->name(), ": argument ", name, " is not an integer");
}

int64_t LoweringContext::integer(std::string_view name, int64_t fallback) const {
  return has(name) ? integer(name) : fallback;
}

double LoweringContext::real(std::string_view name) const {
  const auto value = static_number(name);
  TP_CHECK(value.has_value(), this->name(), ": no static number ", name, " (is it in static_args?)");
  return *value;
}

double LoweringContext::real(std::string_view name, double fallback) const { return has(name) ? real(name) : fallback; }

bool LoweringContext::flag(std::string_view name, bool fallback) const {
  const Argument* argument = find(name);
  if (argument == nullptr || is_none(*argument)) return fallback;
  const auto* value = std::get_if<bool>(&argument->attribute);
  TP_CHECK(argument->kind == Argument::Kind::kAttribute && value != nullptr, this->name(), ": argument ", name,
           " is not a bool");
  return *value;
}

Dims LoweringContext::ints(std::string_view name) const {
  if (!has(name)) return {};
  const Argument* argument = find(name);
  TP_CHECK(argument->kind == Argument::Kind::kAttribute, this->name(), ": argument ", name, " is not static");
  if (const auto* list = std::get_if<Dims>(&argument->attribute)) return *list;
  return {integer(name)};
}

std::vector<bool> LoweringContext::bools(std::string_view name) const {
  if (!has(name)) return {};
  const auto* list = std::get_if<std::vector<bool>>(&find(name)->attribute);
  TP_CHECK(list != nullptr, this->name(), ": argument ", name, " is not a list of bools");
  return *list;
}

std::string LoweringContext::string(std::string_view name, std::string_view fallback) const {
  if (!has(name)) return std::string(fallback);
  const auto* text = std::get_if<std::string>(&find(name)->attribute);
  TP_CHECK(text != nullptr, this->name(), ": argument ", name, " is not a string");
  return *text;
}

std::optional<DType> LoweringContext::dtype(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  const auto* value = std::get_if<DType>(&find(name)->attribute);
  TP_CHECK(value != nullptr, this->name(), ": argument ", name, " is not a dtype");
  return *value;
}

const TensorType& LoweringContext::output(size_t i) const {
  if (!has_outputs_) decline("needs the output type, and PyTorch has no meta kernel for it here");
  return signature_.outputs.at(i).type;
}

void LoweringContext::add_to(Promotion& promotion, std::string_view name, std::optional<size_t> item) const {
  const Argument* argument = find(name);
  if (argument == nullptr || is_none(*argument)) return;
  const auto is_left_out = [&](size_t i, size_t size) { return item.has_value() && size > 1 && i != *item; };
  for (size_t i = 0; i < argument->tensors.size(); ++i) {
    const TensorRef& ref = argument->tensors[i];
    if (ref.source == TensorRef::Source::kNone || is_left_out(i, argument->tensors.size())) continue;
    const bool is_zero_dim = ref.source == TensorRef::Source::kScalar || signature_.operands.at(ref.index).dims.empty();
    if (ref.is_wrapped_number) {
      promotion.add_number(ref.dtype);
    } else if (is_zero_dim) {
      promotion.add_zero_dim(ref.dtype);
    } else {
      promotion.add_tensor(ref.dtype);
    }
  }
  for (size_t i = 0; i < argument->scalars.size(); ++i) {
    if (!is_left_out(i, argument->scalars.size())) promotion.add_number(number_dtype(argument->scalars[i].kind));
  }
  if (argument->kind != Argument::Kind::kAttribute) return;
  if (std::holds_alternative<bool>(argument->attribute)) promotion.add_number(DType::kPred);
  const auto is = [&]<typename T>(T) { return std::holds_alternative<T>(argument->attribute); };
  if (is(int64_t{}) || is(Dims{})) promotion.add_number(DType::kS64);
  if (is(double{}) || is(std::vector<double>{})) promotion.add_number(DType::kF64);
  if (std::holds_alternative<std::complex<double>>(argument->attribute)) promotion.add_number(DType::kC128);
}

DType LoweringContext::result_type(std::initializer_list<std::string_view> names) const {
  Promotion promotion;
  for (const std::string_view name : names) add_to(promotion, name, std::nullopt);
  return promotion.result();
}

DType LoweringContext::item_result_type(std::initializer_list<std::string_view> names, size_t i) const {
  Promotion promotion;
  for (const std::string_view name : names) add_to(promotion, name, i);
  return promotion.result();
}

namespace {

Value read_named_slot(const Value& value, stablehlo::Builder& b) { return b.convert(value, DType::kU64); }

}  // namespace

// The recorder appends a random call's seed and offset as the node's last two slots.
Value LoweringContext::seed() const {
  TP_CHECK(signature_.slot_is_int.size() >= 2, name(), ": not a random operator");
  return read_named_slot(scalars_(static_cast<uint32_t>(signature_.slot_is_int.size() - 2)), b);
}

Value LoweringContext::offset() const {
  TP_CHECK(signature_.slot_is_int.size() >= 2, name(), ": not a random operator");
  return read_named_slot(scalars_(static_cast<uint32_t>(signature_.slot_is_int.size() - 1)), b);
}

}  // namespace torch_pjrt
