#include "ops/elementwise.h"

#include <algorithm>

#include "base/error.h"
#include "ops/host_kernel.h"

namespace torch_pjrt {

bool is_reduced_floating(DType dtype) { return is_floating(dtype) && size_bytes(dtype) <= 2; }

DType wide(DType dtype) { return is_reduced_floating(dtype) ? DType::kF32 : dtype; }

DType accurate(DType dtype) {
  if (!host_kernels_available()) return wide(dtype);
  if (dtype == DType::kF32) return DType::kF64;
  if (dtype == DType::kC64) return DType::kC128;
  return wide(dtype);
}

ElementwiseTypes elementwise_types(Rule rule, DType result_type, DType default_floating, bool mixed) {
  switch (rule) {
    case Rule::kSame:
      return {result_type, result_type};
    case Rule::kArithmetic:
      return {mixed ? wide(result_type) : result_type, result_type};
    case Rule::kWide:
      return {wide(result_type), result_type};
    case Rule::kFloating: {
      const DType result = to_floating(result_type, default_floating);
      return {wide(result), result};
    }
    case Rule::kAccurate: {
      const DType result = to_floating(result_type, default_floating);
      return {accurate(result), result};
    }
  }
  TP_CHECK(false, "unknown dtype rule");
}

Expr finish(const Expr& result, const ElementwiseTypes& types) {
  return result.dtype() == types.compute ? result.convert(types.result) : result;
}

Expr apply(const UnaryOp& op, const Expr& x, DType default_floating) {
  const ElementwiseTypes types = elementwise_types(op.rule, x.dtype(), default_floating);
  return finish(op.function(x.convert(types.compute)), types);
}

DType default_floating(const LoweringContext& ctx, size_t i) {
  if (!ctx.has_outputs() || i >= ctx.num_outputs()) return DType::kF32;
  const DType dtype = real_dtype(ctx.output(i).dtype);
  return is_floating(dtype) ? dtype : DType::kF32;
}

bool is_mixed(const LoweringContext& ctx, std::initializer_list<std::string_view> names, DType dtype) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return ctx.tensor_dtype(name) != dtype; });
}

namespace {

template <typename Row>
const Row& find_row(const std::vector<Row>& rows, std::string_view name) {
  const auto it = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  TP_CHECK(it != rows.end(), "no elementwise function ", name);
  return *it;
}

}  // namespace

const UnaryOp& unary_function(std::string_view name) { return find_row(unary_functions(), name); }
const BinaryOp& binary_function(std::string_view name) { return find_row(binary_functions(), name); }

}  // namespace torch_pjrt
