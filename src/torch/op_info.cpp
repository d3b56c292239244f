#include "torch/op_info.h"

#include <ATen/core/jit_type.h>

#include <algorithm>

#include "ops/aten_call.h"
#include "ops/host_kernel.h"
#include "torch/argument_checks.h"

namespace torch_pjrt {
namespace {

using Kind = ArgumentRule::Kind;

bool contains(const std::vector<std::string_view>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

c10::TypePtr strip_optional(c10::TypePtr type) {
  if (const auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
  return type;
}

bool is_number_type(c10::TypeKind kind) {
  return kind == c10::TypeKind::NumberType || kind == c10::TypeKind::FloatType;
}

Kind classify(const c10::Argument& argument) {
  const auto type = strip_optional(argument.real_type());
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return Kind::kTensor;
    case c10::TypeKind::NumberType:
    case c10::TypeKind::FloatType:
      return Kind::kScalar;
    case c10::TypeKind::ScalarTypeType:
      return Kind::kDType;
    case c10::TypeKind::GeneratorType:
      return Kind::kGenerator;
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
    case c10::TypeKind::DeviceObjType:
      return Kind::kIgnored;
    case c10::TypeKind::ListType: {
      const auto element = strip_optional(type->castRaw<c10::ListType>()->getElementType());
      if (element->kind() == c10::TypeKind::TensorType) return Kind::kTensorList;
      return is_number_type(element->kind()) ? Kind::kScalarList : Kind::kStatic;
    }
    default:
      return argument.name() == "pin_memory" ? Kind::kIgnored : Kind::kStatic;
  }
}

bool is_number(const ArgumentRule& rule) { return rule.kind == Kind::kScalar || rule.kind == Kind::kScalarList; }

ArgumentRule make_rule(const c10::Argument& argument) {
  ArgumentRule rule;
  rule.kind = classify(argument);
  rule.is_mutated = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  rule.is_out = argument.is_out();
  return rule;
}

ArgumentRule make_rule(const c10::Argument& argument, const OpEntry& entry) {
  ArgumentRule rule = make_rule(argument);
  rule.is_mutated = rule.is_mutated || contains(entry.mutates, argument.name());
  rule.is_unread = rule.is_out || contains(entry.unread, argument.name());
  rule.is_static = !is_number(rule) || contains(entry.static_args, argument.name());
  if (contains(entry.constant_defaults, argument.name()) && argument.default_value().has_value()) {
    rule.constant_default = *argument.default_value();
  }
  return rule;
}

// Numbers are run-time inputs, but for those that results take their sizes from: scale_factors of the upsamplings.
ArgumentRule make_call_rule(const c10::Argument& argument, const OpEntry* table_entry) {
  ArgumentRule rule = make_rule(argument);
  rule.is_mutated = rule.is_mutated || (table_entry != nullptr && contains(table_entry->mutates, argument.name()));
  rule.is_unread = rule.is_out;
  rule.is_static = !is_number(rule) || argument.name().find("scale") != std::string::npos;
  return rule;
}

lazy::Schema::Use use_of(const ArgumentRule& rule) {
  if (rule.is_out) return lazy::Schema::Use::kOut;
  return rule.is_mutated ? lazy::Schema::Use::kUpdate : lazy::Schema::Use::kRead;
}

}  // namespace

bool ArgumentRule::is_constant(const c10::IValue& value) const {
  if (is_static || !constant_default.has_value()) return is_static;
  // 1.0 is not the default 1: a float that varies does not recompile on its way.
  if (value.isInt() && constant_default->isInt()) return value.toInt() == constant_default->toInt();
  return value.isDouble() && constant_default->isDouble() && value.toDouble() == constant_default->toDouble();
}

std::string base_name(const std::string& name) {
  const auto colons = name.find("::");
  const std::string bare = name.substr(colons + 2);
  const bool is_dunder =
      bare.size() > 4 && bare.compare(0, 2, "__") == 0 && bare.compare(bare.size() - 2, 2, "__") == 0;
  if (is_dunder) {
    // "__iand__" is the in-place form of "__and__".
    return bare[2] == 'i' && bare.size() > 7 ? name.substr(0, colons + 4) + bare.substr(3) : name;
  }
  return name.back() == '_' ? name.substr(0, name.size() - 1) : name;
}

OpInfo::OpInfo(const c10::OperatorHandle& op) : OpInfo(op, find_op(base_name(op.schema().name())), nullptr) {
  entry = find_op(name);
  kernel_rule = find_kernel_rule(name);
}

OpInfo OpInfo::of_aten_call(const c10::OperatorHandle& op) {
  OpInfo info(op, find_op(base_name(op.schema().name())), &aten_call_entry());
  const auto any = [&](const auto& condition) {
    return std::any_of(info.arguments.begin(), info.arguments.end(), condition);
  };
  if (any([](const ArgumentRule& rule) { return rule.kind == Kind::kGenerator; })) {
    info.entry = &aten_random_call_entry();
  } else if (info.returns.empty() && !any([](const ArgumentRule& rule) { return rule.is_mutated; })) {
    info.entry = &aten_check_entry();
  }
  return info;
}

namespace {

bool holds_tensors(const ArgumentRule& rule) {
  return rule.kind == ArgumentRule::Kind::kTensor || rule.kind == ArgumentRule::Kind::kTensorList;
}

}  // namespace

OpInfo::OpInfo(const c10::OperatorHandle& op, const OpEntry* table_entry, const OpEntry* call_entry)
    : entry(call_entry) {
  const auto& function = op.schema();
  name = base_name(function.name());
  accepts = find_check(function.name(), function.overload_name());
  takes_cpu_indices = torch_pjrt::takes_cpu_indices(name);
  schema.name = name;
  schema.overload = function.overload_name();
  schema.operator_name = c10::toString(op.operator_name());
  seed.mix(std::string_view(function.name()));
  seed.mix(std::string_view(function.overload_name()));
  if (call_entry != nullptr) seed.mix(std::string_view("call"));
  for (const auto& argument : function.arguments()) {
    schema.argument_names.push_back(argument.name());
    arguments.push_back(call_entry != nullptr    ? make_call_rule(argument, table_entry)
                        : table_entry != nullptr ? make_rule(argument, *table_entry)
                                                 : make_rule(argument));
    schema.uses.push_back(use_of(arguments.back()));
    if (arguments.back().is_mutated && !arguments.back().is_out && !first_mutated) {
      first_mutated = arguments.size() - 1;
    }
  }
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    for (uint32_t j = 0; arguments[i].is_mutated && j < arguments.size(); ++j) {
      if (j != i && holds_tensors(arguments[j])) written_pairs.emplace_back(i, j);
    }
  }
  for (const auto& result : function.returns()) {
    ReturnRule rule;
    const auto* alias = result.alias_info();
    if (alias != nullptr && alias->isWrite()) {
      rule.kind = ReturnRule::Kind::kArgument;
      const auto& all = function.arguments();
      const auto it = std::find_if(all.begin(), all.end(), [&](const c10::Argument& argument) {
        return argument.alias_info() != nullptr && argument.alias_info()->beforeSets() == alias->beforeSets();
      });
      rule.argument = static_cast<size_t>(it - all.begin());
      is_recordable = is_recordable && it != all.end();
    } else if (result.type()->kind() == c10::TypeKind::ListType) {
      rule.kind = ReturnRule::Kind::kFreshList;
      const auto element = strip_optional(result.type()->castRaw<c10::ListType>()->getElementType());
      is_recordable = is_recordable && element->kind() == c10::TypeKind::TensorType;
    } else {
      is_recordable =
          is_recordable && strip_optional(result.type())->kind() == c10::TypeKind::TensorType && alias == nullptr;
    }
    returns.push_back(rule);
  }
}

}  // namespace torch_pjrt
