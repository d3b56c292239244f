#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {
namespace {

// An IEEE-like format: bias 2^(exponent_bits - 1) - 1.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // f8E4M3FN has none: the all-ones pattern is NaN, and overflow gives NaN

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int width() const { return 1 + exponent_bits + mantissa_bits; }
  int max_exponent() const { return has_infinity ? bias() : bias() + 1; }
  double max_finite() const {
    // Without infinities the top exponent is used too, less the one mantissa that is NaN.
    const double fraction = has_infinity ? std::ldexp(1.0, -mantissa_bits) : std::ldexp(1.0, 1 - mantissa_bits);
    return std::ldexp(2.0 - fraction, max_exponent());
  }
};

FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {5, 10, true};
    case DType::kBF16:
      return {8, 7, true};
    case DType::kF32:
    case DType::kC64:
      return {8, 23, true};
    case DType::kF64:
    case DType::kC128:
      return {11, 52, true};
    case DType::kF8E4M3FN:
      return {4, 3, false};
    case DType::kF8E5M2:
      return {5, 2, true};
    default:
      TP_CHECK(false, "not a floating type: ", hlo_name(dtype));
  }
}

// Rounds to the format, nearest even.
double round_to(double value, const FloatFormat& format) {
  if (format.mantissa_bits == 52 || value == 0 || !std::isfinite(value)) {
    if (std::isinf(value) && !format.has_infinity) return std::numeric_limits<double>::quiet_NaN();
    return value;
  }
  const int exponent = std::max(std::ilogb(value), 1 - format.bias());
  const double unit = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double rounded = std::nearbyint(value / unit) * unit;
  if (std::fabs(rounded) <= format.max_finite()) return rounded;
  return format.has_infinity ? std::copysign(std::numeric_limits<double>::infinity(), value)
                             : std::numeric_limits<double>::quiet_NaN();
}

uint64_t non_finite_bits(double value, const FloatFormat& format) {
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (format.width() - 1) : 0;
  const uint64_t exponent = ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  if (!format.has_infinity) return sign | exponent | ((uint64_t{1} << format.mantissa_bits) - 1);
  if (std::isinf(value)) return sign | exponent;
  return exponent | uint64_t{1} << (format.mantissa_bits - 1);
}

void append_hex(std::string& out, uint64_t bits, int width) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (int shift = width - 4; shift >= 0; shift -= 4) out.push_back(kHex[bits >> shift & 15]);
}

// MLIR's float literals need a decimal point: 1e+30 becomes 1.0e+30.
void append_decimal(std::string& out, std::string_view digits) {
  const size_t exponent = std::min(digits.find('e'), digits.size());
  out.append(digits.substr(0, exponent));
  if (digits.substr(0, exponent).find('.') == std::string_view::npos) out.append(".0");
  out.append(digits.substr(exponent));
}

// `value` is already rounded to the format.
void append_float(std::string& out, double value, const FloatFormat& format) {
  if (!std::isfinite(value)) {
    out.append("0x");
    append_hex(out, non_finite_bits(value, format), format.width());
    return;
  }
  char digits[40];
  // MLIR reads a double and rounds it to the type; the shorter form of f32 and below stands only if that gives `value`.
  if (format.mantissa_bits < 52) {
    const char* end = std::to_chars(digits, digits + sizeof digits, static_cast<float>(value)).ptr;
    double read = 0;
    std::from_chars(digits, end, read);
    if (round_to(read, format) == value) {
      append_decimal(out, {digits, static_cast<size_t>(end - digits)});
      return;
    }
  }
  const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  append_decimal(out, {digits, static_cast<size_t>(end - digits)});
}

// Wraps to the integer type's width, as a C++ cast does.
uint64_t wrap(uint64_t value, DType dtype) {
  const int bits = static_cast<int>(8 * size_bytes(dtype));
  if (bits == 64) return value;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  const uint64_t low = value & mask;
  const bool is_negative = is_signed(dtype) && (low >> (bits - 1)) != 0;
  return is_negative ? low | ~mask : low;
}

uint64_t integer_from(double value, DType dtype) {
  TP_USER_CHECK(value == std::trunc(value) && value >= -0x1p63 && value < 0x1p64, kInvalidArgument,
                "stablehlo.constant: not a number of type ", hlo_name(dtype), ": ", value);
  const auto bits = value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
  return wrap(bits, dtype);
}

// One scalar in the form that its dtype is stored and printed in.
ConstantKey scalar_from(double value, DType dtype) {
  if (dtype == DType::kPred) return {dtype, value != 0};
  if (is_integral(dtype)) return {dtype, integer_from(value, dtype)};
  return {dtype, std::bit_cast<uint64_t>(round_to(value, format_of(dtype)))};
}

ConstantKey scalar_from(int64_t value, DType dtype) {
  if (dtype == DType::kPred) return {dtype, value != 0};
  if (is_integral(dtype)) return {dtype, wrap(static_cast<uint64_t>(value), dtype)};
  return scalar_from(static_cast<double>(value), dtype);
}

ConstantKey scalar_from(std::complex<double> value, DType dtype) {
  ConstantKey key = scalar_from(value.real(), dtype);
  if (is_complex(dtype)) key.high = scalar_from(value.imag(), dtype).low;
  return key;
}

void append_scalar(std::string& out, const ConstantKey& key) {
  char digits[24];
  if (key.dtype == DType::kPred) {
    out.append(key.low != 0 ? "true" : "false");
  } else if (is_integral(key.dtype)) {
    char* end = is_signed(key.dtype) ? std::to_chars(digits, digits + sizeof digits, static_cast<int64_t>(key.low)).ptr
                                     : std::to_chars(digits, digits + sizeof digits, key.low).ptr;
    out.append(digits, end);
  } else if (is_complex(key.dtype)) {
    out.push_back('(');
    append_float(out, std::bit_cast<double>(key.low), format_of(key.dtype));
    out.append(", ");
    append_float(out, std::bit_cast<double>(key.high), format_of(key.dtype));
    out.push_back(')');
  } else {
    append_float(out, std::bit_cast<double>(key.low), format_of(key.dtype));
  }
}

// Row-major elements as nested lists: [[1, 2], [3, 4]].
void append_nested(std::string& out, const std::vector<ConstantKey>& elements, const Dims& dims, size_t axis,
                   size_t& next) {
  if (axis == dims.size()) {
    append_scalar(out, elements[next++]);
    return;
  }
  out.push_back('[');
  for (int64_t i = 0; i < dims[axis]; ++i) {
    if (i > 0) out.append(", ");
    append_nested(out, elements, dims, axis + 1, next);
  }
  out.push_back(']');
}

void append_dense(std::string& out, const std::vector<ConstantKey>& elements, const TensorType& type) {
  // Beyond this many integers the raw bytes (little endian, as on every host that XLA supports) parse faster.
  constexpr size_t kMaxListed = 64;
  if (elements.empty()) return;
  if (std::equal(elements.begin() + 1, elements.end(), elements.begin())) {
    append_scalar(out, elements[0]);
  } else if (elements.size() <= kMaxListed || !is_integral(type.dtype)) {
    size_t next = 0;
    append_nested(out, elements, type.dims, 0, next);
  } else {
    out.append("\"0x");
    for (const ConstantKey& element : elements) {
      for (size_t byte = 0; byte < size_bytes(type.dtype); ++byte) append_hex(out, element.low >> (8 * byte) & 0xff, 8);
    }
    out.push_back('"');
  }
}

}  // namespace

Value Builder::Impl::constant(const ConstantKey& key) {
  if (const auto it = scope().constants.find(key); it != scope().constants.end()) return it->second;
  const Value result = new_result(intern(key.dtype, {}));
  begin(result) << "stablehlo.constant dense<";
  append_scalar(text, key);
  *this << ">";
  end(result);
  scope().constants.emplace(key, result);
  return result;
}

Value Builder::constant(double value, DType dtype) { return impl_->constant(scalar_from(value, dtype)); }
Value Builder::constant(int64_t value, DType dtype) { return impl_->constant(scalar_from(value, dtype)); }
Value Builder::constant(bool value, DType dtype) { return impl_->constant(scalar_from(int64_t{value}, dtype)); }
Value Builder::constant(std::complex<double> value, DType dtype) { return impl_->constant(scalar_from(value, dtype)); }

Value Builder::dense(const std::vector<int64_t>& values, const TensorType& type) {
  std::vector<ConstantKey> elements;
  elements.reserve(values.size());
  for (const int64_t value : values) elements.push_back(scalar_from(value, type.dtype));
  return impl_->dense(elements, type);
}

Value Builder::dense(const std::vector<double>& values, const TensorType& type) {
  std::vector<ConstantKey> elements;
  elements.reserve(values.size());
  for (const double value : values) elements.push_back(scalar_from(value, type.dtype));
  return impl_->dense(elements, type);
}

Value Builder::Impl::dense(const std::vector<ConstantKey>& elements, const TensorType& type) {
  TP_USER_CHECK(static_cast<int64_t>(elements.size()) == type.numel(), kInvalidArgument,
                "stablehlo.constant: one number for each element: ", elements.size(), " for ", type.hlo());
  if (type.rank() == 0) return constant(elements[0]);
  const Value result = new_result(intern(type));
  begin(result) << "stablehlo.constant dense<";
  append_dense(text, elements, type);
  *this << ">";
  end(result);
  return result;
}

Value Builder::iota(const TensorType& type, int64_t dim) {
  TP_USER_CHECK(dim >= 0 && dim < type.rank(), kInvalidArgument, "stablehlo.iota: no dimension ", dim, " in ",
                type.hlo());
  TP_USER_CHECK(type.dtype != DType::kPred, kInvalidArgument, "stablehlo.iota: unsupported element type: ", type.hlo());
  const Value result = impl_->new_result(impl_->intern(type));
  impl_->begin(result) << "stablehlo.iota dim = " << dim;
  impl_->end(result);
  return result;
}

Value Builder::lowest(DType dtype) {
  TP_USER_CHECK(!is_complex(dtype), kInvalidArgument,
                "stablehlo.constant: complex numbers have no order: ", hlo_name(dtype));
  if (dtype == DType::kF8E4M3FN) return constant(-format_of(dtype).max_finite(), dtype);
  if (is_floating(dtype)) return constant(-std::numeric_limits<double>::infinity(), dtype);
  if (!is_signed(dtype)) return constant(0, dtype);
  return constant(static_cast<int64_t>(~uint64_t{0} << (8 * size_bytes(dtype) - 1)), dtype);
}

Value Builder::highest(DType dtype) {
  TP_USER_CHECK(!is_complex(dtype), kInvalidArgument,
                "stablehlo.constant: complex numbers have no order: ", hlo_name(dtype));
  if (dtype == DType::kPred) return constant(true, dtype);
  if (dtype == DType::kF8E4M3FN) return constant(format_of(dtype).max_finite(), dtype);
  if (is_floating(dtype)) return constant(std::numeric_limits<double>::infinity(), dtype);
  // All ones wraps to the largest unsigned number; the sign bit cleared gives the largest signed one.
  const uint64_t ones = ~uint64_t{0};
  return constant(static_cast<int64_t>(is_signed(dtype) ? ones >> (65 - 8 * size_bytes(dtype)) : ones), dtype);
}

Value Builder::identity(Reduction reduction, DType dtype) {
  switch (reduction) {
    case Reduction::kAdd:
    case Reduction::kOr:
      return constant(0, dtype);
    case Reduction::kMul:
      return constant(1, dtype);
    case Reduction::kAnd:
      return dtype == DType::kPred ? constant(true, dtype) : constant(-1, dtype);
    case Reduction::kMax:
      return lowest(dtype);
    case Reduction::kMin:
      return highest(dtype);
  }
  TP_CHECK(false, "unknown reduction");
}

}  // namespace torch_pjrt::stablehlo
