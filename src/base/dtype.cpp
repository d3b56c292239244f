#include "base/dtype.h"

#include <array>

#include "base/error.h"

namespace torch_pjrt {
namespace {

enum class Category : uint8_t { kPred, kUnsigned, kSigned, kFloating, kComplex };

struct Row {
  DType dtype;
  uint8_t size_bytes;
  Category category;
  std::string_view mlir;
  std::string_view hlo;
};

constexpr std::array kRows{
    Row{DType::kPred, 1, Category::kPred, "i1", "pred"},
    Row{DType::kU8, 1, Category::kUnsigned, "ui8", "u8"},
    Row{DType::kU16, 2, Category::kUnsigned, "ui16", "u16"},
    Row{DType::kU32, 4, Category::kUnsigned, "ui32", "u32"},
    Row{DType::kU64, 8, Category::kUnsigned, "ui64", "u64"},
    Row{DType::kS8, 1, Category::kSigned, "i8", "s8"},
    Row{DType::kS16, 2, Category::kSigned, "i16", "s16"},
    Row{DType::kS32, 4, Category::kSigned, "i32", "s32"},
    Row{DType::kS64, 8, Category::kSigned, "i64", "s64"},
    Row{DType::kF16, 2, Category::kFloating, "f16", "f16"},
    Row{DType::kBF16, 2, Category::kFloating, "bf16", "bf16"},
    Row{DType::kF32, 4, Category::kFloating, "f32", "f32"},
    Row{DType::kF64, 8, Category::kFloating, "f64", "f64"},
    Row{DType::kC64, 8, Category::kComplex, "complex<f32>", "c64"},
    Row{DType::kC128, 16, Category::kComplex, "complex<f64>", "c128"},
    Row{DType::kF8E4M3FN, 1, Category::kFloating, "f8E4M3FN", "f8e4m3fn"},
    Row{DType::kF8E5M2, 1, Category::kFloating, "f8E5M2", "f8e5m2"},
};

const Row& row(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  TP_CHECK(index < kRows.size() && kRows[index].dtype == dtype, "unknown dtype ", index);
  return kRows[index];
}

}  // namespace

size_t size_bytes(DType dtype) { return row(dtype).size_bytes; }
std::string_view mlir_name(DType dtype) { return row(dtype).mlir; }
std::string_view hlo_name(DType dtype) { return row(dtype).hlo; }
bool is_floating(DType dtype) { return row(dtype).category == Category::kFloating; }
bool is_complex(DType dtype) { return row(dtype).category == Category::kComplex; }

bool is_integral(DType dtype) {
  return row(dtype).category == Category::kUnsigned || row(dtype).category == Category::kSigned;
}

bool is_signed(DType dtype) { return row(dtype).category > Category::kUnsigned; }

DType real_dtype(DType dtype) {
  if (dtype == DType::kC64) return DType::kF32;
  if (dtype == DType::kC128) return DType::kF64;
  return dtype;
}

DType complex_dtype(DType dtype) { return dtype == DType::kF64 || dtype == DType::kC128 ? DType::kC128 : DType::kC64; }

}  // namespace torch_pjrt
