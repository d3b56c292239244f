#include <algorithm>
#include <array>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {
namespace {

bool contains(const Dims& dims, int64_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

bool is_integer_or_pred(DType dtype) { return is_integral(dtype) || dtype == DType::kPred; }

// An accumulation type may be wider than the operands', of the same kind.
void check_result_dtype(std::string_view op, DType operand, DType result) {
  TP_USER_CHECK(
      is_integer_or_pred(operand) == is_integer_or_pred(result) && is_floating(operand) == is_floating(result),
      kInvalidArgument, op, ": the result's element type must be of the operands' kind: ", hlo_name(operand), " to ",
      hlo_name(result));
}

void check_dot_pairs(const Value& lhs, const Value& rhs, const Dims& lhs_dims, const Dims& rhs_dims,
                     std::string_view which) {
  bool agrees = lhs_dims.size() == rhs_dims.size();
  for (size_t i = 0; agrees && i < lhs_dims.size(); ++i) agrees = lhs.dim(lhs_dims[i]) == rhs.dim(rhs_dims[i]);
  TP_USER_CHECK(agrees, kInvalidArgument, "stablehlo.dot_general: ", which,
                " dimensions must agree: ", to_string(lhs_dims), " of ", lhs.type().hlo(), " and ", to_string(rhs_dims),
                " of ", rhs.type().hlo());
}

void append_free_dims(Dims& dims, const Value& x, const Dims& batch, const Dims& contracting) {
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!contains(batch, i) && !contains(contracting, i)) dims.push_back(x.dim(i));
  }
}

Dims joined(const Dims& a, const Dims& b) {
  Dims all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace

Value Builder::dot_general(Value lhs, Value rhs, const DotDims& dims, std::optional<DType> result_dtype) {
  static constexpr std::string_view kOp = "stablehlo.dot_general";
  TP_USER_CHECK(lhs.dtype() == rhs.dtype(), kInvalidArgument, kOp,
                ": operands must have the same element type: ", lhs.type().hlo(), " and ", rhs.type().hlo());
  check_dims(kOp, "lhs dimensions", joined(dims.lhs_batch, dims.lhs_contracting), lhs.rank());
  check_dims(kOp, "rhs dimensions", joined(dims.rhs_batch, dims.rhs_contracting), rhs.rank());
  check_dot_pairs(lhs, rhs, dims.lhs_batch, dims.rhs_batch, "batch");
  check_dot_pairs(lhs, rhs, dims.lhs_contracting, dims.rhs_contracting, "contracting");
  const DType dtype = result_dtype.value_or(lhs.dtype());
  check_result_dtype(kOp, lhs.dtype(), dtype);

  Dims result_dims;
  for (const int64_t dim : dims.lhs_batch) result_dims.push_back(lhs.dim(dim));
  append_free_dims(result_dims, lhs, dims.lhs_batch, dims.lhs_contracting);
  append_free_dims(result_dims, rhs, dims.rhs_batch, dims.rhs_contracting);
  const Value result = impl_->new_result(impl_->intern(dtype, std::move(result_dims)));
  Impl& out = impl_->begin(result) << "stablehlo.dot_general " << lhs << ", " << rhs;
  if (!dims.lhs_batch.empty()) out << ", batching_dims = [" << dims.lhs_batch << "] x [" << dims.rhs_batch << ']';
  out << ", contracting_dims = [" << dims.lhs_contracting << "] x [" << dims.rhs_contracting
      << "], precision = [HIGHEST, HIGHEST]";
  out.end({lhs, rhs}, {result});
  return result;
}

}  // namespace torch_pjrt::stablehlo
