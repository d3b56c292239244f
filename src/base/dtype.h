// Element types that PyTorch and StableHLO share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace torch_pjrt {

enum class DType : uint8_t {
  kPred,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kF8E4M3FN,
  kF8E5M2,
};

// Bytes of one element in host and device memory (a pred takes one byte).
size_t size_bytes(DType dtype);
// StableHLO's spelling: "i1", "ui8", "i64", "bf16", "complex<f32>".
std::string_view mlir_name(DType dtype);
// HLO's spelling, used in IR dumps: "pred", "u8", "s64", "bf16", "c64".
std::string_view hlo_name(DType dtype);

bool is_floating(DType dtype);  // real floating point, float8 included
bool is_complex(DType dtype);
bool is_integral(DType dtype);  // signed or unsigned integer; not pred
bool is_signed(DType dtype);    // can hold negative numbers; false for pred and unsigned

// Real type of a complex type (kC64 -> kF32); any other type is returned unchanged.
DType real_dtype(DType dtype);
// Complex type over a real floating type: kF64 -> kC128, all others -> kC64.
DType complex_dtype(DType dtype);

}  // namespace torch_pjrt
