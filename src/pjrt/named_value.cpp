#include "pjrt/named_value.h"

#include <type_traits>

#include "base/error.h"

namespace torch_pjrt::pjrt {
namespace {

PJRT_NamedValue to_pjrt(const std::string& name, const NamedValue& value) {
  PJRT_NamedValue result{};
  result.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  result.name = name.data();
  result.name_size = name.size();
  result.value_size = 1;
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          result.type = PJRT_NamedValue_kString;
          result.string_value = v.data();
          result.value_size = v.size();
        } else if constexpr (std::is_same_v<T, int64_t>) {
          result.type = PJRT_NamedValue_kInt64;
          result.int64_value = v;
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          result.type = PJRT_NamedValue_kInt64List;
          result.int64_array_value = v.data();
          result.value_size = v.size();
        } else if constexpr (std::is_same_v<T, float>) {
          result.type = PJRT_NamedValue_kFloat;
          result.float_value = v;
        } else {
          result.type = PJRT_NamedValue_kBool;
          result.bool_value = v;
        }
      },
      value);
  return result;
}

NamedValue from_pjrt(const PJRT_NamedValue& value) {
  switch (value.type) {
    case PJRT_NamedValue_kString:
      return std::string(value.string_value, value.value_size);
    case PJRT_NamedValue_kInt64:
      return value.int64_value;
    case PJRT_NamedValue_kInt64List:
      return std::vector<int64_t>(value.int64_array_value, value.int64_array_value + value.value_size);
    case PJRT_NamedValue_kFloat:
      return value.float_value;
    case PJRT_NamedValue_kBool:
      return value.bool_value;
  }
  throw_error(ErrorCode::kInternal, "PJRT_NamedValue: unknown type ", static_cast<int>(value.type), " of '",
              std::string_view(value.name, value.name_size), "'");
}

}  // namespace

std::vector<PJRT_NamedValue> to_pjrt(const NamedValues& values) {
  std::vector<PJRT_NamedValue> result;
  result.reserve(values.size());
  for (const auto& [name, value] : values) result.push_back(to_pjrt(name, value));
  return result;
}

NamedValues from_pjrt(const PJRT_NamedValue* values, size_t count) {
  NamedValues result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    result.emplace_back(std::string(values[i].name, values[i].name_size), from_pjrt(values[i]));
  }
  return result;
}

std::string to_string(const NamedValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return v;
        } else if constexpr (std::is_same_v<T, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          std::string text;
          for (const int64_t item : v) text += (text.empty() ? "" : ".") + std::to_string(item);
          return text;
        } else {
          return std::to_string(v);
        }
      },
      value);
}

}  // namespace torch_pjrt::pjrt
