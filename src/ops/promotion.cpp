#include "ops/promotion.h"

#include "base/error.h"

namespace torch_pjrt {
namespace {

int category(DType dtype) {
  if (is_complex(dtype)) return 3;
  if (is_floating(dtype)) return 2;
  return dtype == DType::kPred ? 0 : 1;
}

DType promote_integers(DType a, DType b) {
  if (is_signed(a) == is_signed(b)) return size_bytes(a) >= size_bytes(b) ? a : b;
  const DType s = is_signed(a) ? a : b;
  const DType u = is_signed(a) ? b : a;
  TP_USER_CHECK(u == DType::kU8, kInvalidArgument,
                "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", hlo_name(a),
                " and ", hlo_name(b));
  return s == DType::kS8 ? DType::kS16 : s;
}

DType promote_floats(DType a, DType b) {
  if (size_bytes(a) == size_bytes(b)) return size_bytes(a) == 2 ? DType::kF32 : a;  // f16 with bf16
  return size_bytes(a) > size_bytes(b) ? a : b;
}

void combine(std::optional<DType>& state, DType dtype) { state = state ? promote(*state, dtype) : dtype; }

// at::native::combine_categories: the lower-priority dtype counts only when its category is higher.
std::optional<DType> combine_categories(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher) return lower;
  if (!lower) return higher;
  if (is_complex(*higher)) return higher;
  if (is_floating(*higher)) return is_complex(*lower) ? std::optional(promote(*higher, *lower)) : higher;
  if (*higher == DType::kPred || is_floating(*lower) || is_complex(*lower)) return promote(*higher, *lower);
  return higher;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  const int ca = category(a);
  const int cb = category(b);
  if (ca < cb) return promote(b, a);
  if (ca == 3) {
    const bool is_double = real_dtype(a) == DType::kF64 || real_dtype(b) == DType::kF64;
    return is_double ? DType::kC128 : DType::kC64;
  }
  if (ca != cb) return a;
  return ca == 2 ? promote_floats(a, b) : promote_integers(a, b);
}

DType number_dtype(lazy::ScalarKind kind) {
  switch (kind) {
    case lazy::ScalarKind::kBool:
      return DType::kPred;
    case lazy::ScalarKind::kInt:
      return DType::kS64;
    case lazy::ScalarKind::kDouble:
      return DType::kF64;
    case lazy::ScalarKind::kComplex:
      return DType::kC128;
  }
  TP_CHECK(false, "unknown scalar kind");
}

DType to_floating(DType dtype, DType default_dtype) {
  return is_floating(dtype) || is_complex(dtype) ? dtype : default_dtype;
}

DType accumulate_dtype(DType dtype) { return is_floating(dtype) && size_bytes(dtype) < 4 ? DType::kF32 : dtype; }

void Promotion::add_tensor(DType dtype) { combine(tensors_, dtype); }
void Promotion::add_zero_dim(DType dtype) { combine(zero_dims_, dtype); }

void Promotion::add_number(DType dtype) {
  // update_result_type_state: wrapped floats count as the default dtype, wrapped complex as its complex type.
  if (dtype == DType::kF64) dtype = DType::kF32;
  if (dtype == DType::kC128) dtype = DType::kC64;
  combine(numbers_, dtype);
}

DType Promotion::result() const {
  const auto result = combine_categories(tensors_, combine_categories(zero_dims_, numbers_));
  TP_CHECK(result.has_value(), "type promotion over no operands");
  return *result;
}

}  // namespace torch_pjrt
