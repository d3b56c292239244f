#include "ops/cast.h"

#include "ops/registry.h"

namespace torch_pjrt {

using stablehlo::Value;
using stablehlo::Values;

Value cast(stablehlo::Builder& b, Value x, DType dtype) {
  if (is_complex(x.dtype()) && !is_complex(dtype) && dtype != DType::kPred) x = b.real(x);
  if (is_floating(x.dtype()) && is_integral(dtype)) {
    // C converts to a register-wide integer, whose low bits are kept.
    const bool fits_32_bits = size_bytes(dtype) <= 2 || dtype == DType::kS32;
    return b.convert(b.convert(x, fits_32_bits ? DType::kS32 : DType::kS64), dtype);
  }
  const bool to_reduced = is_floating(dtype) && size_bytes(dtype) <= 2;
  if (to_reduced && x.dtype() != DType::kF32 && x.dtype() != DType::kPred) x = b.convert(x, DType::kF32);
  return b.convert(x, dtype);
}

namespace {

Values lower_cast(LoweringContext& ctx) { return {cast(ctx.b, ctx.tensor("self"), ctx.output().dtype)}; }

Values lower_identity(LoweringContext& ctx) { return {ctx.tensor("self")}; }

}  // namespace

const OpTable& cast_ops() {
  static const OpTable table = {
      {"xla::cast", lower_cast},
      {"aten::clone", lower_identity},
      {"aten::lift_fresh_copy", lower_identity},
      {"aten::alias_copy", lower_identity},
      {"aten::detach_copy", lower_identity},
  };
  return table;
}

}  // namespace torch_pjrt
