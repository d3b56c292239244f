// Operators that PyTorch composes for every backend but XLA, which it takes for one without views
// (CompositeExplicitAutogradNonFunctional). Ours has views, and a composition of views keeps indices run-time inputs.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_trilinear_native.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/as_strided_scatter_native.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/diag_embed_native.h>
#include <ATen/ops/diagonal_scatter_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/group_norm_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/linalg_pinv_native.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linear_native.h>
#include <ATen/ops/narrow_copy_native.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/new_empty_strided_native.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/select_backward_native.h>
#include <ATen/ops/select_scatter_native.h>
#include <ATen/ops/slice_backward_native.h>
#include <ATen/ops/slice_scatter_native.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <string_view>

#include "base/tensor_type.h"

namespace torch_pjrt {
namespace {

at::Tensor contiguous_clone(const at::Tensor& view) { return view.clone(at::MemoryFormat::Contiguous); }

// "aten::permute_copy" is permute and a copy of its result or results.
void copy_of_view(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static constexpr std::string_view kSuffix = "_copy";
  c10::OperatorName name = op.operator_name();
  name.name.resize(name.name.size() - kSuffix.size());
  // view_copy also takes what is no view.
  if (name.name == "aten::view" && name.overload_name.empty()) name.name = "aten::reshape";
  const auto view = c10::Dispatcher::singleton().findSchemaOrThrow(name.name.c_str(), name.overload_name.c_str());
  view.callBoxed(stack);
  c10::IValue& result = stack->back();
  if (result.isTensor()) {
    result = contiguous_clone(result.toTensor());
    return;
  }
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : result.toTensorVector()) copies.push_back(contiguous_clone(tensor));
  result = std::move(copies);
}

constexpr const char* kViewCopies[] = {
    "_conj_copy",
    "_fw_primal_copy",
    "_neg_view_copy",
    "_reshape_alias_copy",
    "as_strided_copy",
    "diagonal_copy",
    "expand_copy",
    "permute_copy",
    "select_copy.int",
    "slice_copy.Tensor",
    "split_copy.Tensor",
    "squeeze_copy",
    "squeeze_copy.dim",
    "squeeze_copy.dims",
    "split_with_sizes_copy",
    "t_copy",
    "unbind_copy.int",
    "transpose_copy.int",
    "unfold_copy",
    "unsqueeze_copy",
    "view_as_complex_copy",
    "view_as_real_copy",
    "view_copy",
    "view_copy.dtype",
};

bool equal(const at::Tensor& self, const at::Tensor& other) {
  return self.sizes() == other.sizes() && self.eq(other).all().item<bool>();
}

// PyTorch's own makes the input row-major on every device but the CPU.
at::Tensor group_norm(const at::Tensor& input, int64_t num_groups, const std::optional<at::Tensor>& weight,
                      const std::optional<at::Tensor>& bias, double eps, bool cudnn_enabled) {
  const at::MemoryFormat format = input.suggest_memory_format();
  const int64_t channels = input.dim() > 1 ? input.size(1) : 0;
  const auto fits = [&](const std::optional<at::Tensor>& parameter) {
    return !parameter || !parameter->defined() || (parameter->dim() == 1 && parameter->numel() == channels);
  };
  const bool is_refused = num_groups <= 0 || channels % num_groups != 0 || !fits(weight) || !fits(bias);
  if (is_refused || format == at::MemoryFormat::Contiguous) {
    return at::native::group_norm(input, num_groups, weight, bias, eps, cudnn_enabled);
  }
  const int64_t samples = input.size(0);
  const int64_t size = c10::multiply_integers(input.sizes().slice(2));
  return std::get<0>(
      at::native_group_norm(input.contiguous(format), weight, bias, samples, channels, size, num_groups, eps));
}

// The CPU's kernel has checks, and words, of its own.
at::Tensor narrow_copy(const at::Tensor& self, int64_t dim, c10::SymInt start, c10::SymInt length) {
  const bool has_dim = dim >= -self.dim() && dim < self.dim();
  const int64_t size = has_dim ? self.size(dim) : 0;
  const int64_t first = start.expect_int(), count = length.expect_int();
  if (!has_dim || first < -size || first > size || count < 0 || (first < 0 ? first + size : first) + count > size) {
    const at::Tensor outline = at::zeros({1}, self.scalar_type()).as_strided(self.sizes(), Dims(self.sizes().size()));
    at::native::narrow_copy_dense_cpu(outline, dim, first, count);
  }
  return at::native::narrow_copy_dense_symint(self, dim, start, length);
}

// torch.norm goes this way only for devices that it does not know; on the CPU it calls linalg_vector_norm.
at::Tensor norm(const at::Tensor& self, const std::optional<at::Scalar>& p, at::OptionalIntArrayRef dim, bool keepdim,
                std::optional<at::ScalarType> dtype) {
  return at::linalg_vector_norm(self, p.value_or(2), dim, keepdim, dtype);
}

// torch.norm names all dimensions where it means no particular one.
at::OptionalIntArrayRef unless_all(const at::Tensor& self, at::IntArrayRef dim) {
  bool are_all = static_cast<int64_t>(dim.size()) == self.dim();
  for (size_t i = 0; i < dim.size(); ++i) are_all = are_all && dim[i] == static_cast<int64_t>(i);
  return dim.empty() || are_all ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dim);
}

at::Tensor norm_scalar(const at::Tensor& self, const at::Scalar& p) {
  return norm(self, p, std::nullopt, false, std::nullopt);
}

at::Tensor norm_dim(const at::Tensor& self, const std::optional<at::Scalar>& p, at::IntArrayRef dim, bool keepdim) {
  return norm(self, p, unless_all(self, dim), keepdim, std::nullopt);
}

at::Tensor norm_scalar_dtype(const at::Tensor& self, const std::optional<at::Scalar>& p, at::ScalarType dtype) {
  return norm(self, p, std::nullopt, false, dtype);
}

at::Tensor norm_dim_dtype(const at::Tensor& self, const std::optional<at::Scalar>& p, at::IntArrayRef dim, bool keepdim,
                          at::ScalarType dtype) {
  return norm(self, p, unless_all(self, dim), keepdim, dtype);
}

// On XLA PyTorch's own multiplies and adds where the CPU calls addmm, which wants one dtype.
at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
  const auto differs = [&](const at::Tensor& other) {
    return other.defined() && other.scalar_type() != input.scalar_type();
  };
  if (differs(weight) || (bias && differs(*bias))) [[unlikely]] {
    const auto outline = [](const at::Tensor& tensor) {
      return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.scalar_type());
    };
    const bool has_bias = bias && bias->defined();
    at::linear(outline(input), outline(weight), has_bias ? std::optional(outline(*bias)) : std::nullopt);
  }
  return at::native::linear(input, weight, bias);
}

// PyTorch's own looks at the classes on the CPU only. As many as the largest says is a number that is waited for.
at::Tensor one_hot(const at::Tensor& self, int64_t num_classes) {
  const bool is_counted = num_classes == -1 && self.numel() > 0 && self.scalar_type() == at::kLong;
  if (is_counted) {
    const auto [smallest, largest] = at::aminmax(self);
    TORCH_CHECK(smallest.item<int64_t>() >= 0, "Class values must be non-negative.");
    num_classes = largest.item<int64_t>() + 1;
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return at::one_hot(self, num_classes);
}

using PinvFunction = at::Tensor(const at::Tensor&, const std::optional<at::Tensor>&, const std::optional<at::Tensor>&,
                                bool);

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  for (const char* name : kViewCopies) m.impl(name, torch::CppFunction::makeFromBoxedFunction<&copy_of_view>());
  m.impl("_trilinear", at::native::_trilinear);
  m.impl("as_strided_", at::native::as_strided__symint);
  m.impl("as_strided_scatter", at::native::as_strided_scatter_symint);
  m.impl("copy", at::native::copy);
  m.impl("equal", equal);
  m.impl("diag_embed", at::native::diag_embed);
  m.impl("diagonal_scatter", at::native::diagonal_scatter);
  m.impl("is_set_to", at::native::is_set_to);
  m.impl("linalg_pinv.atol_rtol_tensor", static_cast<PinvFunction*>(at::native::linalg_pinv));
  m.impl("group_norm", group_norm);
  m.impl("linear", linear);
  m.impl("norm.Scalar", norm_scalar);
  m.impl("norm.ScalarOpt_dim", norm_dim);
  m.impl("norm.ScalarOpt_dim_dtype", norm_dim_dtype);
  m.impl("norm.ScalarOpt_dtype", norm_scalar_dtype);
  m.impl("narrow_copy", narrow_copy);
  m.impl("new_empty_strided", at::native::new_empty_strided_symint);
  m.impl("select_backward", at::native::select_backward_symint);
  m.impl("select_scatter", at::native::select_scatter_symint);
  m.impl("slice_backward", at::native::slice_backward);
  m.impl("slice_scatter", at::native::slice_scatter);
}

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) {
  m.impl("group_norm", group_norm);
  m.impl("linear", linear);
  m.impl("one_hot", one_hot);
}

}  // namespace
}  // namespace torch_pjrt
