// Tensors on another device in the place of the xla tensors of a call.
#pragma once

#include <ATen/core/stack.h>

#include <unordered_map>

#include "torch/op_info.h"

namespace torch_pjrt {

class StandIns {
 public:
  enum class Kind {
    kMeta,           // without data
    kMetaOutsEmpty,  // the same, with out= tensors of no elements
    kCpu,            // of one value, zero if not told; they share memory as the originals do
    kCopy,           // of the originals' values, on the CPU; they share memory as the originals do
    kOneElement,     // zeros on the CPU, one element each: they cost nothing, and show the dtypes
    kWideElement,    // the same, with float32 for the smaller floats
    kShrunk          // ones on the CPU, at most two a dimension, with the strides' order
  };

  explicit StandIns(const OpInfo& info, Kind kind, int value = 0) : info_(info), kind_(kind), value_(value) {}

  torch::jit::Stack make(c10::ArrayRef<c10::IValue> arguments);

 private:
  c10::IValue make(const ArgumentRule& rule, const c10::IValue& value);
  at::Tensor make(const at::Tensor& tensor, bool is_emptied);
  at::Tensor make_like(const at::Tensor& tensor);
  at::Tensor make_on_cpu(const at::Tensor& tensor);

  bool is_meta() const { return kind_ == Kind::kMeta || kind_ == Kind::kMetaOutsEmpty; }

  const OpInfo& info_;
  Kind kind_;
  int value_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> made_;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> memory_;
};

// All elements of the tensor's dtype that its storage holds.
at::Tensor whole_storage(const at::Tensor& tensor);

}  // namespace torch_pjrt
