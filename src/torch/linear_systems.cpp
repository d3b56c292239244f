// Solutions, inverses and determinants by LU factors, composed as ATen's own kernels are. These kernels are below
// autograd, whose formulas want the factors of the transposed matrix where ATen's kernels leave those.
#include <ATen/Functions.h>
#include <ATen/ops/_linalg_check_errors_compositeexplicitautograd_dispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "exec/runtime.h"
#include "ops/host_kernel.h"
#include "torch/errors.h"
#include "torch/recorder.h"

namespace torch_pjrt {
namespace {

using at::Tensor;

// Whether ATen's kernels of determinants leave the factors of the transposed matrix, as autograd's formulas know.
bool factors_transposed(const Tensor& matrix) { return matrix.is_contiguous() && !matrix.is_complex(); }

Tensor meta_of(const Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

// Pivots of 1 are in range; those of 0 are not.
Tensor ones_like_on_cpu(const Tensor& tensor) { return at::ones(tensor.sizes(), tensor.scalar_type()); }

// Raises what eager PyTorch raises about an operator's arguments, and returns the results of its shape function.
template <typename Function, typename... Tensors>
auto call_on_meta(const Function& function, const Tensors&... tensors) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  try {
    return function(meta_of(tensors)...);
  } catch (const std::exception&) {
    function(ones_like_on_cpu(tensors)...);  // shape functions in Python have words of their own
    throw;
  }
}

// `result` with the strides of `meta`: LAPACK's, by columns.
Tensor restrided(const Tensor& result, const Tensor& meta) {
  if (result.strides() == meta.strides()) return result;
  return at::empty_strided(meta.sizes(), meta.strides(), result.options()).copy_(result);
}

Tensor solve_by_factors(const Tensor& lu, const Tensor& pivots, const Tensor& rhs, bool adjoint) {
  const auto [p, l, u] = at::lu_unpack(lu, pivots);
  if (!adjoint) {
    const Tensor y = at::linalg_solve_triangular(l, at::matmul(p.mT(), rhs), /*upper=*/false, true, true);
    return at::linalg_solve_triangular(u, y, /*upper=*/true);
  }
  const Tensor y = at::linalg_solve_triangular(u.mH(), rhs, /*upper=*/false);
  return at::matmul(p, at::linalg_solve_triangular(l.mH(), y, /*upper=*/true, true, true));
}

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& rhs, bool left, bool adjoint) {
  const Tensor meta = call_on_meta(
      [&](const Tensor& meta_lu, const Tensor& meta_pivots, const Tensor& meta_rhs) {
        return at::linalg_lu_solve(meta_lu, meta_pivots, meta_rhs, left, adjoint);
      },
      lu, pivots, rhs);
  const Tensor result =
      left ? solve_by_factors(lu, pivots, rhs, adjoint) : solve_by_factors(lu, pivots, rhs.mH(), !adjoint).mH();
  return restrided(result, meta);
}

bool is_vector(const Tensor& matrix, const Tensor& rhs) {
  return rhs.dim() == 1 ||
         (matrix.dim() - 1 == rhs.dim() && rhs.sizes() == matrix.sizes().slice(0, static_cast<size_t>(rhs.dim())));
}

std::tuple<Tensor, Tensor, Tensor, Tensor> solve_ex(const Tensor& matrix, const Tensor& rhs, bool left,
                                                    bool check_errors) {
  const auto meta =
      call_on_meta([&](const Tensor& meta_matrix,
                       const Tensor& meta_rhs) { return at::_linalg_solve_ex(meta_matrix, meta_rhs, left, false); },
                   matrix, rhs);
  const auto [lu, pivots, info] = at::linalg_lu_factor_ex(matrix);
  if (check_errors) at::_linalg_check_errors(info, "torch.linalg.solve_ex", matrix.dim() == 2);
  const bool vector = is_vector(matrix, rhs);
  Tensor result = lu_solve(lu, pivots, vector ? rhs.unsqueeze(-1) : rhs, left, /*adjoint=*/false);
  if (vector) result = result.squeeze(-1);
  return {restrided(result, std::get<0>(meta)), lu, pivots, info};
}

std::tuple<Tensor, Tensor> inv_ex(const Tensor& matrix, bool check_errors) {
  const auto meta = call_on_meta([](const Tensor& x) { return at::linalg_inv_ex(x); }, matrix);
  const Tensor identity = at::eye(matrix.size(-1), matrix.options()).expand_as(matrix);
  const auto [result, lu, pivots, info] = at::_linalg_solve_ex(matrix, identity);
  if (check_errors) at::_linalg_check_errors(info, "linalg.inv_ex", matrix.dim() == 2);
  return {restrided(result, std::get<0>(meta)), info};
}

// The determinant of the row exchanges.
Tensor exchange_sign(const Tensor& pivots, at::ScalarType dtype) {
  const Tensor order = at::arange(1, pivots.size(-1) + 1, pivots.options());
  const Tensor exchanges = order.ne(pivots).sum(-1);
  return exchanges.remainder(2).mul(-2).add(1).to(dtype);
}

std::tuple<Tensor, Tensor, Tensor> determinant(const Tensor& matrix) {
  call_on_meta([](const Tensor& meta) { return at::_linalg_det(meta); }, matrix);
  const auto [lu, pivots, info] = at::linalg_lu_factor_ex(factors_transposed(matrix) ? matrix.mT() : matrix);
  return {lu.diagonal(0, -2, -1).prod(-1).mul(exchange_sign(pivots, matrix.scalar_type())), lu, pivots};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> log_determinant(const Tensor& matrix) {
  call_on_meta([](const Tensor& meta) { return at::_linalg_slogdet(meta); }, matrix);
  const auto [lu, pivots, info] = at::linalg_lu_factor_ex(factors_transposed(matrix) ? matrix.mT() : matrix);
  const Tensor diagonal = lu.diagonal(0, -2, -1);
  const Tensor sign = diagonal.sgn().prod(-1).mul(exchange_sign(pivots, matrix.scalar_type()));
  return {sign, diagonal.abs().log().sum(-1), lu, pivots};
}

std::tuple<Tensor, Tensor, Tensor> lu_factors(const Tensor& matrix, bool pivot) {
  call_on_meta([&](const Tensor& meta) { return at::linalg_lu(meta, pivot); }, matrix);
  const auto [lu, pivots, info] = at::linalg_lu_factor_ex(matrix, pivot);
  return at::lu_unpack(lu, pivots);
}

// PyTorch composes this one for every backend, by reading the values.
void check_errors(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  with_c10_errors([] { Runtime::get(); });  // knows whether the plugin takes calls
  if (host_kernels_on()) return record_any(op, keys, stack);
  const auto arguments = torch::jit::pop(*stack, 3);
  at::compositeexplicitautograd::_linalg_check_errors(arguments[0].toTensor(), arguments[1].toStringView(),
                                                      arguments[2].toBool());
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("_linalg_check_errors", torch::CppFunction::makeFromBoxedFunction<&check_errors>());
  m.impl("linalg_lu_solve", lu_solve);
  m.impl("_linalg_solve_ex", solve_ex);
  m.impl("linalg_inv_ex", inv_ex);
  m.impl("_linalg_det", determinant);
  m.impl("_linalg_slogdet", log_determinant);
  m.impl("linalg_lu", lu_factors);
}

}  // namespace
}  // namespace torch_pjrt
