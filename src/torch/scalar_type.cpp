#include "torch/scalar_type.h"

#include <c10/util/Exception.h>

#include <optional>

namespace torch_pjrt {
namespace {

std::optional<DType> find(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Bool:
      return DType::kPred;
    case c10::ScalarType::Byte:
      return DType::kU8;
    case c10::ScalarType::UInt16:
      return DType::kU16;
    case c10::ScalarType::UInt32:
      return DType::kU32;
    case c10::ScalarType::UInt64:
      return DType::kU64;
    case c10::ScalarType::Char:
      return DType::kS8;
    case c10::ScalarType::Short:
      return DType::kS16;
    case c10::ScalarType::Int:
      return DType::kS32;
    case c10::ScalarType::Long:
      return DType::kS64;
    case c10::ScalarType::Half:
      return DType::kF16;
    case c10::ScalarType::BFloat16:
      return DType::kBF16;
    case c10::ScalarType::Float:
      return DType::kF32;
    case c10::ScalarType::Double:
      return DType::kF64;
    case c10::ScalarType::ComplexFloat:
      return DType::kC64;
    case c10::ScalarType::ComplexDouble:
      return DType::kC128;
    case c10::ScalarType::Float8_e4m3fn:
      return DType::kF8E4M3FN;
    case c10::ScalarType::Float8_e5m2:
      return DType::kF8E5M2;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool has_dtype(c10::ScalarType type) { return find(type).has_value(); }

DType to_dtype(c10::ScalarType type) {
  const auto dtype = find(type);
  TORCH_CHECK_TYPE(dtype.has_value(), "xla: tensors of dtype ", c10::toString(type), " are not supported");
  return *dtype;
}

c10::ScalarType to_scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kPred:
      return c10::ScalarType::Bool;
    case DType::kU8:
      return c10::ScalarType::Byte;
    case DType::kU16:
      return c10::ScalarType::UInt16;
    case DType::kU32:
      return c10::ScalarType::UInt32;
    case DType::kU64:
      return c10::ScalarType::UInt64;
    case DType::kS8:
      return c10::ScalarType::Char;
    case DType::kS16:
      return c10::ScalarType::Short;
    case DType::kS32:
      return c10::ScalarType::Int;
    case DType::kS64:
      return c10::ScalarType::Long;
    case DType::kF16:
      return c10::ScalarType::Half;
    case DType::kBF16:
      return c10::ScalarType::BFloat16;
    case DType::kF32:
      return c10::ScalarType::Float;
    case DType::kF64:
      return c10::ScalarType::Double;
    case DType::kC64:
      return c10::ScalarType::ComplexFloat;
    case DType::kC128:
      return c10::ScalarType::ComplexDouble;
    case DType::kF8E4M3FN:
      return c10::ScalarType::Float8_e4m3fn;
    case DType::kF8E5M2:
      return c10::ScalarType::Float8_e5m2;
  }
  return c10::ScalarType::Undefined;
}

}  // namespace torch_pjrt
