#include "ops/value_check.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/expression.h"
#include "ops/host_call.h"
#include "ops/host_kernel.h"

namespace torch_pjrt {

RangeError RangeError::of_dimension(ErrorCode code, int64_t dim, int64_t size, std::string_view prefix) {
  return {code, concat(prefix, "index "), concat(" is out of bounds for dimension ", dim, " with size ", size)};
}

namespace {

thread_local OperandCheckScope* current_scope = nullptr;

}  // namespace

OperandCheckScope::OperandCheckScope(stablehlo::Builder& b, const stablehlo::Values& operands)
    : b_(b), operands_(operands) {
  current_scope = this;
}

OperandCheckScope::~OperandCheckScope() { current_scope = nullptr; }

OperandCheckScope* OperandCheckScope::current() { return current_scope; }

void OperandCheckScope::add(stablehlo::Value index, OperandCheck check) {
  const stablehlo::StridedSource source = b_.source_of(index);
  const auto found = std::find(operands_.begin(), operands_.end(), source.base);
  if (found == operands_.end() || !source.starts.empty()) return;
  if (index.numel() != source.base.numel()) {
    if (index.numel() != 1) return;
    check.element = source.offset;
  }
  check.operand = static_cast<size_t>(found - operands_.begin());
  checks.push_back(std::move(check));
}

void check_range(stablehlo::Builder& b, stablehlo::Value index, int64_t low, int64_t high, const RangeError& error,
                 std::optional<int64_t> except) {
  if (!host_kernels_on() || index.numel() == 0) return;
  if (auto* scope = OperandCheckScope::current())
    scope->add(index, {.operand = 0, .low = low, .high = high, .error = error, .except = except});
  const Expr x(b, index);
  const Expr checked = except ? select(x == static_cast<double>(*except), static_cast<double>(low), x) : x;
  HostCall call(b, kCheckRange);
  call.tensor(checked).integer(low).integer(high).attribute(error.before);
  call.attribute(error.after ? lazy::Attribute(*error.after) : lazy::Attribute());
  call.attribute(error.code == ErrorCode::kIndexError).emit();
}

void require(stablehlo::Builder& b, stablehlo::Value flags, std::string_view words) {
  if (!host_kernels_on() || flags.numel() == 0) return;
  Dims all(flags.dims().size());
  std::iota(all.begin(), all.end(), int64_t{0});
  const stablehlo::Value flag = all.empty() ? flags : b.reduce(stablehlo::Reduction::kAnd, flags, all);
  HostCall(b, kRequire).tensor(flag).attribute(std::string(words)).emit();
}

namespace {

// As c10::Scalar names it, and the largest finite number; no name where every number can be held.
struct Range {
  std::string_view name;
  double low = 0, high = 0;
};

Range range_of(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return {"uint8_t", -255, 255};  // negative numbers wrap
    case DType::kS8:
      return {"int8_t", -0x1p7, 0x1p7 - 1};
    case DType::kS16:
      return {"int16_t", -0x1p15, 0x1p15 - 1};
    case DType::kS32:
      return {"int", -0x1p31, 0x1p31 - 1};
    case DType::kS64:
      return {"int64_t", -0x1p63, 0x1p63};  // the largest is no double
    case DType::kF16:
      return {"c10::Half", -65504, 65504};
    case DType::kBF16:
      return {"c10::BFloat16", -0x1.fep127, 0x1.fep127};
    case DType::kF32:
      return {"float", -0x1.fffffep127, 0x1.fffffep127};
    case DType::kF64:
      return {"double", -std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
    default:
      return {};
  }
}

}  // namespace

void require_convertible(stablehlo::Builder& b, stablehlo::Value value, DType dtype) {
  const Range range = range_of(dtype);
  if (range.name.empty() || value.dtype() == dtype || value.dtype() == DType::kPred) return;
  const Expr number(b, value);
  const Expr x = (is_complex(value.dtype()) ? real(number) : number).convert(DType::kF64);
  Expr fits = (x >= range.low) & (x <= range.high);
  if (is_floating(dtype)) fits = fits | is_nan(x) | (abs(x) == std::numeric_limits<double>::infinity());
  if (is_complex(value.dtype())) fits = fits & (imag(number) == 0.0);
  require(b, fits, concat("value cannot be converted to type ", range.name, " without overflow"));
}

}  // namespace torch_pjrt
