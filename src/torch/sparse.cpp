// Sparse COO tensors on xla: PyTorch's own representation, over xla tensors of indices and values. Taking one apart and
// putting one together is PyTorch's code for every device; every other operator runs on the CPU, counted.
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_dimI_native.h>
#include <ATen/ops/_dimV_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/values_native.h>
#include <torch/library.h>

#include "torch/map_tensors.h"
#include "torch/op_info.h"
#include "torch/statistics.h"

namespace torch_pjrt {
namespace {

bool is_on_xla(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == c10::DeviceType::XLA; }

// The same tensor elsewhere, dense or sparse.
at::Tensor move(const at::Tensor& tensor, c10::Device device) {
  if (!tensor.defined() || tensor.device() == device) return tensor;
  if (tensor.layout() != at::kSparse) return tensor.to(device);
  return at::_sparse_coo_tensor_unsafe(tensor._indices().to(device), tensor._values().to(device), tensor.sizes(),
                                       tensor.options().device(device), tensor.is_coalesced());
}

c10::Device find_device(c10::ArrayRef<c10::IValue> arguments) {
  c10::Device device(c10::DeviceType::XLA, 0);
  for (const c10::IValue& value : arguments) {
    if (value.isDevice() && value.toDevice().type() == device.type()) device = value.toDevice();
    map_tensors(value, [&](const at::Tensor& tensor) {
      if (is_on_xla(tensor)) device = tensor.device();
      return tensor;
    });
  }
  return device;
}

// What the CPU's kernel wrote into `host` goes to the tensor that it stands for.
void write_back(const at::Tensor& tensor, const at::Tensor& host) {
  if (!is_on_xla(tensor)) return;
  if (tensor.layout() != at::kSparse) {
    if (tensor.sizes() != host.sizes()) tensor.resize_(host.sizes());
    tensor.copy_(host);
    return;
  }
  auto& impl = *static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
  impl.raw_resize_(host.sparse_dim(), host.dense_dim(), host.sizes());
  impl.set_indices_and_values_unsafe(host._indices().to(tensor.device()), host._values().to(tensor.device()));
  impl.set_coalesced(host.is_coalesced());
}

void write_back(const c10::IValue& value, const c10::IValue& host) {
  if (value.isTensor()) return write_back(value.toTensor(), host.toTensor());
  if (!value.isTensorList()) return;
  const auto tensors = value.toTensorVector(), hosts = host.toTensorVector();
  for (size_t i = 0; i < tensors.size(); ++i) write_back(tensors[i], hosts[i]);
}

// The boxed kernel of every operator that meets a sparse xla tensor.
void run_sparse_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::FunctionSchema& schema = op.schema();
  count(base_name(schema.name()));
  const size_t num_arguments = schema.arguments().size();
  const std::vector<c10::IValue> arguments = torch::jit::pop(*stack, num_arguments);
  const c10::Device device = find_device(arguments);
  torch::jit::Stack host;
  for (const c10::IValue& value : arguments) {
    host.push_back(value.isDevice() ? c10::IValue(c10::Device(c10::kCPU))
                                    : map_tensors(value, [](const at::Tensor& t) { return move(t, c10::kCPU); }));
  }
  const torch::jit::Stack host_arguments = host;
  op.callBoxed(&host);
  const auto is_written = [](const c10::AliasInfo* alias) { return alias != nullptr && alias->isWrite(); };
  for (size_t i = 0; i < num_arguments; ++i) {
    if (is_written(schema.arguments()[i].alias_info())) write_back(arguments[i], host_arguments[i]);
  }
  for (size_t i = 0; i < host.size(); ++i) {
    const c10::AliasInfo* alias = schema.returns()[i].alias_info();
    size_t written = num_arguments;
    for (size_t j = 0; is_written(alias) && j < num_arguments; ++j) {
      const c10::AliasInfo* other = schema.arguments()[j].alias_info();
      if (other != nullptr && other->beforeSets() == alias->beforeSets()) written = j;
    }
    stack->push_back(written < num_arguments
                         ? arguments[written]
                         : map_tensors(host[i], [&](const at::Tensor& tensor) { return move(tensor, device); }));
  }
}

TORCH_LIBRARY_IMPL(_, SparseXLA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_sparse_on_cpu>()); }

TORCH_LIBRARY_IMPL(aten, SparseXLA, m) {
  m.impl("_coalesced_", at::native::_coalesced_sparse_);
  m.impl("_dimI", at::native::sparse_dim_sparse);
  m.impl("_dimV", at::native::dense_dim_sparse);
  m.impl("_indices", at::native::_indices_sparse);
  m.impl("_nnz", at::native::_nnz_sparse);
  m.impl("_sparse_coo_tensor_with_dims", at::native::new_with_dims_sparse);
  m.impl("_sparse_coo_tensor_with_dims_and_tensors", at::native::new_with_dims_and_tensor_sparse_symint);
  m.impl("_values", at::native::_values_sparse);
  m.impl("clone", at::native::clone_sparse);
  m.impl("copy_", at::native::copy_sparse_wrapper_);
  m.impl("copy_sparse_to_sparse_", at::native::copy_sparse_);
  m.impl("dense_dim", at::native::dense_dim_sparse);
  m.impl("empty.memory_format", at::native::empty_sparse_symint);
  m.impl("indices", at::native::indices_sparse);
  m.impl("is_coalesced", at::native::is_coalesced_sparse);
  m.impl("sparse_dim", at::native::sparse_dim_sparse);
  m.impl("values", at::native::values_sparse);
}

}  // namespace
}  // namespace torch_pjrt
