#include <algorithm>
#include <array>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {
namespace {

bool contains(const Dims& dims, int64_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

bool is_integer_or_pred(DType dtype) { return is_integral(dtype) || dtype == DType::kPred; }

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

void check_accumulation_dtype(std::string_view op, DType operand, DType result) {
  TP_USER_CHECK(
      is_integer_or_pred(operand) == is_integer_or_pred(result) && is_floating(operand) == is_floating(result),
      kInvalidArgument, op, ": the result's element type must be of the operands' kind: ", hlo_name(operand), " to ",
      hlo_name(result));
}

Value Builder::dot_general(Value lhs, Value rhs, const DotDims& dims, std::optional<DType> result_dtype) {
  static constexpr std::string_view kOp = "stablehlo.dot_general";
  TP_USER_CHECK(lhs.dtype() == rhs.dtype(), kInvalidArgument, kOp,
                ": operands must have the same element type: ", lhs.type().hlo(), " and ", rhs.type().hlo());
  check_dims(kOp, "lhs dimensions", joined(dims.lhs_batch, dims.lhs_contracting), lhs.rank());
  check_dims(kOp, "rhs dimensions", joined(dims.rhs_batch, dims.rhs_contracting), rhs.rank());
  check_dot_pairs(lhs, rhs, dims.lhs_batch, dims.rhs_batch, "batch");
  check_dot_pairs(lhs, rhs, dims.lhs_contracting, dims.rhs_contracting, "contracting");
  const DType dtype = result_dtype.value_or(lhs.dtype());
  check_accumulation_dtype(kOp, lhs.dtype(), dtype);

  Dims result_dims;
  for (const int64_t dim : dims.lhs_batch) result_dims.push_back(lhs.dim(dim));
  append_free_dims(result_dims, lhs, dims.lhs_batch, dims.lhs_contracting);
  append_free_dims(result_dims, rhs, dims.rhs_batch, dims.rhs_contracting);
  const Value result = impl_->new_result(impl_->intern(dtype, result_dims));
  Impl& out = impl_->begin(result) << "stablehlo.dot_general " << lhs << ", " << rhs;
  if (!dims.lhs_batch.empty()) out << ", batching_dims = [" << dims.lhs_batch << "] x [" << dims.rhs_batch << ']';
  out << ", contracting_dims = [" << dims.lhs_contracting << "] x [" << dims.rhs_contracting
      << "], precision = [HIGHEST, HIGHEST]";
  out.end({lhs, rhs}, {result});
  return result;
}

namespace {

void check_square(std::string_view op, const Value& x) {
  TP_USER_CHECK(is_floating(x.dtype()) || is_complex(x.dtype()), kInvalidArgument, op,
                ": unsupported element type: ", x.type().hlo());
  TP_USER_CHECK(x.rank() >= 2 && x.dim(x.rank() - 1) == x.dim(x.rank() - 2), kInvalidArgument, op,
                ": the matrices must be square: ", x.type().hlo());
}

}  // namespace

Value Builder::cholesky(Value x, bool lower) {
  check_square("stablehlo.cholesky", x);
  const Value result = impl_->new_result(Impl::type_of(x));
  impl_->begin(result) << "stablehlo.cholesky " << x << ", lower = " << lower;
  impl_->end(result);
  return result;
}

Value Builder::triangular_solve(Value a, Value b, bool left_side, bool lower, bool unit_diagonal, bool transpose_a,
                                bool conjugate_a) {
  static constexpr std::string_view kOp = "stablehlo.triangular_solve";
  check_square(kOp, a);
  bool agrees = a.dtype() == b.dtype() && a.rank() == b.rank();
  for (int64_t i = 0; agrees && i < a.rank() - 2; ++i) agrees = a.dim(i) == b.dim(i);
  agrees = agrees && b.dim(b.rank() - (left_side ? 2 : 1)) == a.dim(a.rank() - 1);
  TP_USER_CHECK(agrees, kInvalidArgument, kOp, ": b must have a's element type, batch and size on the ",
                left_side ? "left" : "right", ": ", a.type().hlo(), " and ", b.type().hlo());
  // StableHLO conjugates only together with a transposition.
  TP_USER_CHECK(transpose_a || !conjugate_a || !is_complex(a.dtype()), kInvalidArgument, kOp,
                ": conjugate_a needs transpose_a: ", a.type().hlo());
  const std::string_view transpose = !transpose_a ? "NO_TRANSPOSE" : conjugate_a ? "ADJOINT" : "TRANSPOSE";
  const Value result = impl_->new_result(Impl::type_of(b));
  impl_->begin(result) << "\"stablehlo.triangular_solve\"(" << a << ", " << b << ") <{left_side = " << left_side
                       << ", lower = " << lower << ", transpose_a = #stablehlo<transpose " << transpose
                       << ">, unit_diagonal = " << unit_diagonal << "}>";
  impl_->end({a, b}, {result});
  return result;
}

namespace {

// The result type of a Fourier transform over the last `lengths.size()` dimensions.
TensorType fft_type(const Value& x, FftType type, const Dims& lengths) {
  static constexpr std::string_view kOp = "stablehlo.fft";
  const auto transformed = static_cast<int64_t>(lengths.size());
  TP_USER_CHECK(transformed >= 1 && transformed <= 3 && transformed <= x.rank(), kInvalidArgument, kOp,
                ": 1 to 3 of the last dimensions: ", to_string(lengths), " of ", x.type().hlo());
  TP_USER_CHECK(type == FftType::kRfft ? x.dtype() == DType::kF32 || x.dtype() == DType::kF64 : is_complex(x.dtype()),
                kInvalidArgument, kOp, ": unsupported element type: ", x.type().hlo());
  const int64_t half = lengths.back() / 2 + 1;
  Dims expected = lengths;
  if (type == FftType::kIrfft) expected.back() = lengths.back() == 0 ? 0 : half;
  TP_USER_CHECK(std::equal(expected.begin(), expected.end(), x.dims().end() - transformed), kInvalidArgument, kOp,
                ": the last dimensions must be ", to_string(expected), " for lengths ", to_string(lengths), ": ",
                x.type().hlo());
  TensorType result = x.type();
  if (type == FftType::kRfft) {
    result.dtype = complex_dtype(x.dtype());
    result.dims.back() = lengths.back() == 0 ? 0 : half;
  } else if (type == FftType::kIrfft) {
    result.dtype = real_dtype(x.dtype());
    result.dims.back() = lengths.back();
  }
  return result;
}

}  // namespace

Value Builder::fft(Value x, FftType type, const Dims& lengths) {
  static constexpr std::array<std::string_view, 4> kTypes{"FFT", "IFFT", "RFFT", "IRFFT"};
  const Value result = impl_->new_result(impl_->intern(fft_type(x, type, lengths)));
  impl_->begin(result) << "stablehlo.fft " << x << ", type = " << kTypes[static_cast<size_t>(type)] << ", length = ["
                       << lengths << ']';
  impl_->end(x, result);
  return result;
}

}  // namespace torch_pjrt::stablehlo
