#include "torch/stand_ins.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

#include "torch/map_tensors.h"
#include "torch/storage.h"

namespace torch_pjrt {
namespace {

at::Tensor make_shrunk(const at::Tensor& tensor) {
  const auto rank = static_cast<size_t>(tensor.dim());
  Dims sizes(tensor.sizes().begin(), tensor.sizes().end());
  for (int64_t& size : sizes) size = std::min<int64_t>(size, 2);
  std::vector<size_t> inner_first(rank);
  std::iota(inner_first.begin(), inner_first.end(), size_t{0});
  std::stable_sort(inner_first.begin(), inner_first.end(),
                   [&](size_t a, size_t b) { return tensor.stride(a) < tensor.stride(b); });
  Dims strides(rank);
  int64_t next = 1, previous = 0, last = 0;
  for (const size_t dim : inner_first) {
    const int64_t original = tensor.stride(static_cast<int64_t>(dim));
    // Equal strides, zero among them, stay equal.
    if (original != previous) last = next;
    strides[dim] = last;
    previous = original;
    next = std::max(next, last * sizes[dim]);
  }
  return at::ones({int64_t{1} << rank}, tensor.scalar_type()).as_strided(sizes, strides);
}

at::TensorOptions meta_options(const at::Tensor& tensor) {
  return at::TensorOptions().dtype(tensor.scalar_type()).device(c10::DeviceType::Meta);
}

}  // namespace

torch::jit::Stack StandIns::make(c10::ArrayRef<c10::IValue> arguments) {
  torch::jit::Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i) stack.push_back(make(info_.arguments[i], arguments[i]));
  return stack;
}

c10::IValue StandIns::make(const ArgumentRule& rule, const c10::IValue& value) {
  if (rule.kind == ArgumentRule::Kind::kGenerator) {
    // The default one keeps its state.
    return is_meta() ? c10::IValue() : c10::IValue(at::detail::createCPUGenerator());
  }
  if (value.isDevice()) {
    return c10::IValue(c10::Device(is_meta() ? c10::DeviceType::Meta : c10::DeviceType::CPU));
  }
  const bool is_emptied = rule.is_out && kind_ == Kind::kMetaOutsEmpty;
  return map_tensors(value, [&](const at::Tensor& tensor) { return make(tensor, is_emptied); });
}

at::Tensor StandIns::make(const at::Tensor& tensor, bool is_emptied) {
  if (!tensor.defined() || !is_xla(tensor)) return tensor;
  // One tensor given twice stays one: kernels compare identities.
  at::Tensor& other = made_[tensor.unsafeGetTensorImpl()];
  if (other.defined()) return other;
  other = is_emptied ? at::empty({0}, meta_options(tensor)) : make_like(tensor);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) other.unsafeGetTensorImpl()->set_wrapped_number(true);
  other._set_conj(tensor.is_conj());
  other._set_neg(tensor.is_neg());
  return other;
}

at::Tensor StandIns::make_like(const at::Tensor& tensor) {
  if (kind_ == Kind::kCpu || kind_ == Kind::kCopy) return make_on_cpu(tensor);
  if (is_meta()) return at::empty_strided(tensor.sizes(), tensor.strides(), meta_options(tensor));
  if (kind_ == Kind::kShrunk) return make_shrunk(tensor);
  const c10::ScalarType type = tensor.scalar_type();
  const bool widens = kind_ == Kind::kWideElement && c10::isFloatingType(type) && c10::elementSize(type) < 4;
  return at::zeros(Dims(static_cast<size_t>(tensor.dim()), 1), widens ? at::kFloat : type);
}

at::Tensor StandIns::make_on_cpu(const at::Tensor& tensor) {
  at::Tensor& memory = memory_[tensor.storage().unsafeGetStorageImpl()];
  if (!memory.defined() && kind_ == Kind::kCopy) memory = whole_storage(tensor).cpu();
  if (!memory.defined()) {
    memory = at::zeros({static_cast<int64_t>(tensor.storage().nbytes())}, at::kByte);
    if (value_ != 0) at::empty({0}, tensor.scalar_type()).set_(memory.storage()).fill_(value_);
  }
  return at::empty({0}, tensor.scalar_type())
      .set_(memory.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
}

at::Tensor whole_storage(const at::Tensor& tensor) {
  const auto numel = static_cast<int64_t>(tensor.storage().nbytes() / tensor.itemsize());
  return at::empty({0}, tensor.options()).set_(tensor.storage(), 0, {numel}, {1});
}

}  // namespace torch_pjrt
