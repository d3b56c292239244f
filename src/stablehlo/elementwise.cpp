#include <algorithm>
#include <array>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {
namespace {

// Which element types an operation takes: StableHLO's constraints, less what XLA has no code for (the remainder of
// complex numbers crashes its CPU compiler, their cube root is refused).
enum DTypeSet : uint8_t {
  kP = 1,
  kUnsigned = 2,
  kSigned = 4,
  kFloat = 8,
  kComplex = 16,
  kInt = kUnsigned | kSigned,
  kFloatComplex = kFloat | kComplex,
  kLogical = kP | kInt,
  kArithmetic = kInt | kFloatComplex,
  kAny = kP | kArithmetic,
};

struct Row {
  std::string_view mnemonic;
  uint8_t dtypes;
};

// Sorted by mnemonic.
constexpr std::array kUnary{
    Row{"chlo.acos", kFloatComplex},
    Row{"chlo.acosh", kFloatComplex},
    Row{"chlo.asin", kFloatComplex},
    Row{"chlo.asinh", kFloatComplex},
    Row{"chlo.atan", kFloatComplex},
    Row{"chlo.atanh", kFloatComplex},
    Row{"chlo.bessel_i1e", kFloat},
    Row{"chlo.conj", kFloatComplex},
    Row{"chlo.cosh", kFloatComplex},
    Row{"chlo.digamma", kFloat},
    Row{"chlo.erf", kFloat},
    Row{"chlo.erf_inv", kFloat},
    Row{"chlo.erfc", kFloat},
    Row{"chlo.is_inf", kFloat},
    Row{"chlo.is_neg_inf", kFloat},
    Row{"chlo.is_pos_inf", kFloat},
    Row{"chlo.lgamma", kFloat},
    Row{"chlo.sinh", kFloatComplex},
    Row{"chlo.square", kFloatComplex},
    Row{"chlo.tan", kFloatComplex},
    Row{"stablehlo.abs", kSigned | kFloatComplex},
    Row{"stablehlo.cbrt", kFloat},
    Row{"stablehlo.ceil", kFloat},
    Row{"stablehlo.cosine", kFloatComplex},
    Row{"stablehlo.count_leading_zeros", kInt},
    Row{"stablehlo.exponential", kFloatComplex},
    Row{"stablehlo.exponential_minus_one", kFloatComplex},
    Row{"stablehlo.floor", kFloat},
    Row{"stablehlo.imag", kFloatComplex},
    Row{"stablehlo.is_finite", kFloat},
    Row{"stablehlo.log", kFloatComplex},
    Row{"stablehlo.log_plus_one", kFloatComplex},
    Row{"stablehlo.logistic", kFloatComplex},
    Row{"stablehlo.negate", kArithmetic},
    Row{"stablehlo.not", kLogical},
    Row{"stablehlo.popcnt", kInt},
    Row{"stablehlo.real", kFloatComplex},
    Row{"stablehlo.round_nearest_afz", kFloat},
    Row{"stablehlo.round_nearest_even", kFloat},
    Row{"stablehlo.rsqrt", kFloatComplex},
    Row{"stablehlo.sign", kSigned | kFloatComplex},
    Row{"stablehlo.sine", kFloatComplex},
    Row{"stablehlo.sqrt", kFloatComplex},
    Row{"stablehlo.tan", kFloatComplex},
    Row{"stablehlo.tanh", kFloatComplex},
};

constexpr std::array kBinary{
    Row{"chlo.next_after", kFloat},
    Row{"chlo.polygamma", kFloat},
    Row{"chlo.zeta", kFloat},
    Row{"stablehlo.add", kAny},
    Row{"stablehlo.and", kLogical},
    Row{"stablehlo.atan2", kFloatComplex},
    Row{"stablehlo.divide", kArithmetic},
    Row{"stablehlo.maximum", kAny},
    Row{"stablehlo.minimum", kAny},
    Row{"stablehlo.multiply", kAny},
    Row{"stablehlo.or", kLogical},
    Row{"stablehlo.power", kArithmetic},
    Row{"stablehlo.remainder", kInt | kFloat},
    Row{"stablehlo.shift_left", kInt},
    Row{"stablehlo.shift_right_arithmetic", kInt},
    Row{"stablehlo.shift_right_logical", kInt},
    Row{"stablehlo.subtract", kArithmetic},
    Row{"stablehlo.xor", kLogical},
};

template <size_t n>
constexpr bool is_sorted(const std::array<Row, n>& rows) {
  return std::is_sorted(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.mnemonic < b.mnemonic; });
}
static_assert(is_sorted(kUnary) && is_sorted(kBinary));

uint8_t set_of(DType dtype) {
  if (dtype == DType::kPred) return kP;
  if (is_floating(dtype)) return kFloat;
  if (is_complex(dtype)) return kComplex;
  return is_signed(dtype) ? kSigned : kUnsigned;
}

template <size_t n>
void check_dtype(const std::array<Row, n>& rows, std::string_view mnemonic, const Value& x) {
  const auto it = std::lower_bound(rows.begin(), rows.end(), mnemonic,
                                   [](const Row& row, std::string_view name) { return row.mnemonic < name; });
  TP_CHECK(it != rows.end() && it->mnemonic == mnemonic, "unknown elementwise operation ", mnemonic);
  TP_USER_CHECK((it->dtypes & set_of(x.dtype())) != 0, kInvalidArgument, mnemonic,
                ": unsupported element type: ", x.type().hlo());
}

bool yields_pred(std::string_view mnemonic) {
  return mnemonic == "stablehlo.is_finite" || mnemonic.starts_with("chlo.is_");
}

bool yields_real(std::string_view mnemonic) {
  return mnemonic == "stablehlo.abs" || mnemonic == "stablehlo.real" || mnemonic == "stablehlo.imag";
}

}  // namespace

Value Builder::unary(std::string_view mnemonic, Value x) {
  check_dtype(kUnary, mnemonic, x);
  if (const auto stored = impl_->in_stored_order(*this, {x}, [&](const Values& v) { return unary(mnemonic, v[0]); })) {
    return *stored;
  }
  // Older plugins build a complex number of a real operand's own type.
  if (mnemonic == "chlo.conj" && !is_complex(x.dtype())) return x;
  const InternedType* type = Impl::type_of(x);
  if (yields_pred(mnemonic)) {
    type = impl_->intern(DType::kPred, type->dims);
  } else if (is_complex(type->dtype) && yields_real(mnemonic)) {
    type = impl_->intern(real_dtype(type->dtype), type->dims);
  }
  return impl_->unary(mnemonic, x, type);
}

Value Builder::binary(std::string_view mnemonic, Value lhs, Value rhs) {
  check_dtype(kBinary, mnemonic, lhs);
  const InternedType* type = Impl::type_of(lhs);
  TP_USER_CHECK(type == Impl::type_of(rhs), kInvalidArgument, mnemonic,
                ": operands must have the same type: ", lhs.type().hlo(), " and ", rhs.type().hlo());
  const auto again = [&](const Values& v) { return binary(mnemonic, v[0], v[1]); };
  if (const auto stored = impl_->in_stored_order(*this, {lhs, rhs}, again)) return *stored;
  const Value result = impl_->new_result(type);
  impl_->begin(result) << mnemonic << ' ' << lhs << ", " << rhs << " : " << type;
  if (mnemonic.starts_with("chlo.")) *impl_ << ", " << type << " -> " << type;
  impl_->end_line();
  return result;
}

Value Builder::complex(Value real, Value imag) {
  TP_USER_CHECK(Impl::type_of(real) == Impl::type_of(imag), kInvalidArgument,
                "stablehlo.complex: operands must have the same type: ", real.type().hlo(), " and ", imag.type().hlo());
  TP_USER_CHECK(real.dtype() == DType::kF32 || real.dtype() == DType::kF64, kInvalidArgument,
                "stablehlo.complex: operands must be f32 or f64: ", real.type().hlo());
  const Value result = impl_->new_result(impl_->intern(complex_dtype(real.dtype()), real.dims()));
  impl_->begin(result) << "stablehlo.complex " << real << ", " << imag;
  impl_->end(result);
  return result;
}

Value Builder::compare(Comparison direction, Value lhs, Value rhs, CompareType type) {
  static constexpr std::array<std::string_view, 6> kDirections{"EQ", "NE", "GE", "GT", "LE", "LT"};
  TP_USER_CHECK(Impl::type_of(lhs) == Impl::type_of(rhs), kInvalidArgument,
                "stablehlo.compare: operands must have the same type: ", lhs.type().hlo(), " and ", rhs.type().hlo());
  const auto again = [&](const Values& v) { return compare(direction, v[0], v[1], type); };
  if (const auto stored = impl_->in_stored_order(*this, {lhs, rhs}, again)) return *stored;
  const DType dtype = lhs.dtype();
  TP_USER_CHECK(!is_complex(dtype) || direction == Comparison::kEq || direction == Comparison::kNe, kInvalidArgument,
                "stablehlo.compare: complex numbers have no order: ", lhs.type().hlo());
  const bool is_float = is_floating(dtype) || is_complex(dtype);
  TP_USER_CHECK(type == CompareType::kDefault || is_floating(dtype), kInvalidArgument,
                "stablehlo.compare: the total order is for floating types: ", lhs.type().hlo());
  const std::string_view kind = type == CompareType::kTotalOrder ? "TOTALORDER"
                                : is_float                       ? "FLOAT"
                                : is_signed(dtype)               ? "SIGNED"
                                                                 : "UNSIGNED";
  const Value result = impl_->new_result(impl_->intern(DType::kPred, lhs.dims()));
  const InternedType* operand_type = Impl::type_of(lhs);
  impl_->begin(result) << "stablehlo.compare " << kDirections[static_cast<size_t>(direction)] << ", " << lhs << ", "
                       << rhs << ", " << kind << " : (" << operand_type << ", " << operand_type << ") -> "
                       << Impl::type_of(result);
  impl_->end_line();
  return result;
}

Value Builder::select(Value pred, Value on_true, Value on_false) {
  TP_USER_CHECK(pred.dtype() == DType::kPred && (pred.rank() == 0 || pred.dims() == on_true.dims()), kInvalidArgument,
                "stablehlo.select: pred must be a scalar or have the operands' dims: ", pred.type().hlo(), " for ",
                on_true.type().hlo());
  TP_USER_CHECK(Impl::type_of(on_true) == Impl::type_of(on_false), kInvalidArgument,
                "stablehlo.select: operands must have the same type: ", on_true.type().hlo(), " and ",
                on_false.type().hlo());
  if (on_true == on_false) return on_true;
  const auto again = [&](const Values& v) { return select(v[0], v[1], v[2]); };
  if (const auto stored = impl_->in_stored_order(*this, {pred, on_true, on_false}, again)) return *stored;
  const Value result = impl_->new_result(Impl::type_of(on_true));
  impl_->begin(result) << "stablehlo.select " << pred << ", " << on_true << ", " << on_false << " : "
                       << Impl::type_of(pred) << ", " << Impl::type_of(result);
  impl_->end_line();
  return result;
}

Value Builder::clamp(Value low, Value x, Value high) {
  for (const Value& bound : {low, high}) {
    TP_USER_CHECK(bound.dtype() == x.dtype() && (bound.rank() == 0 || bound.dims() == x.dims()), kInvalidArgument,
                  "stablehlo.clamp: a bound must be a scalar or have the operand's dims, and its dtype: ",
                  bound.type().hlo(), " for ", x.type().hlo());
  }
  TP_USER_CHECK(!is_complex(x.dtype()), kInvalidArgument,
                "stablehlo.clamp: unsupported element type: ", x.type().hlo());
  const Value result = impl_->new_result(Impl::type_of(x));
  impl_->begin(result) << "stablehlo.clamp " << low << ", " << x << ", " << high;
  impl_->end({low, x, high}, {result});
  return result;
}

Value Builder::convert(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (dtype == DType::kPred) return compare(Comparison::kNe, x, splat(0, x.type()));
  if (is_complex(x.dtype()) && !is_complex(dtype)) return convert(real(x), dtype);
  if (const auto stored = impl_->in_stored_order(*this, {x}, [&](const Values& v) { return convert(v[0], dtype); })) {
    return *stored;
  }
  return impl_->unary("stablehlo.convert", x, impl_->intern(dtype, x.dims()));
}

Value Builder::bitcast_convert(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  TP_USER_CHECK(x.dtype() != DType::kPred && dtype != DType::kPred && is_complex(x.dtype()) == is_complex(dtype),
                kInvalidArgument, "stablehlo.bitcast_convert: unsupported element types: ", x.type().hlo(), " to ",
                hlo_name(dtype));
  const auto from = static_cast<int64_t>(size_bytes(x.dtype()));
  const auto to = static_cast<int64_t>(size_bytes(dtype));
  Dims dims = x.dims();
  if (from > to) {
    dims.push_back(from / to);
  } else if (from < to) {
    TP_USER_CHECK(!dims.empty() && dims.back() == to / from, kInvalidArgument,
                  "stablehlo.bitcast_convert: the last dimension must hold one element of the wider type: ",
                  x.type().hlo(), " to ", hlo_name(dtype));
    dims.pop_back();
  }
  return impl_->unary("stablehlo.bitcast_convert", x, impl_->intern(dtype, dims));
}

Value Builder::reduce_precision(Value x, int64_t exponent_bits, int64_t mantissa_bits) {
  TP_USER_CHECK(is_floating(x.dtype()) && exponent_bits >= 1 && mantissa_bits >= 0, kInvalidArgument,
                "stablehlo.reduce_precision: needs a floating operand, exponent_bits >= 1, mantissa_bits >= 0: ",
                x.type().hlo(), ", ", exponent_bits, ", ", mantissa_bits);
  const Value result = impl_->new_result(Impl::type_of(x));
  impl_->begin(result) << "stablehlo.reduce_precision " << x << ", format = e" << exponent_bits << 'm' << mantissa_bits;
  impl_->end(result);
  return result;
}

}  // namespace torch_pjrt::stablehlo
