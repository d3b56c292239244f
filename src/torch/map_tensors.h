// Tensors inside the values of a boxed call.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>

namespace torch_pjrt {

// `value` with function(tensor) in the place of each tensor; undefined ones too, but not None.
template <typename Function>
c10::IValue map_tensors(const c10::IValue& value, const Function& function) {
  if (value.isTensor()) return function(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(function(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional(function(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

// function(tensor) for each tensor among the arguments and in their lists; undefined ones too, but not None.
template <typename Function>
void for_each_tensor(c10::ArrayRef<c10::IValue> arguments, const Function& function) {
  for (const c10::IValue& value : arguments) {
    if (value.isTensor()) function(value.toTensor());
    if (!value.isList()) continue;
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor()) function(item.toTensor());
    }
  }
}

}  // namespace torch_pjrt
