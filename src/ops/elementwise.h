// Plain elementwise operators as functions on values with a dtype rule. The operators themselves, their `_foreach_`
// forms and the fused optimizers share them.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "ops/expression.h"
#include "ops/lowering.h"
#include "ops/promotion.h"
#include "ops/registry.h"

namespace torch_pjrt {

// The dtype in which an operator computes, given PyTorch's result type of its inputs.
enum class Rule {
  kSame,        // the result type itself
  kArithmetic,  // the same, but float16 and bfloat16 with a number or a 0-dim tensor of another dtype in float32
  kWide,        // float16 and bfloat16 in float32
  kFloating,    // as kWide, and integers and bool as the default dtype
  kAccurate,    // as kFloating, and single precision as accurate() says
};

struct ElementwiseTypes {
  DType compute;
  DType result;  // of an operator that does not choose another (pred, the real type of a complex one)
};

// `default_floating` is what kFloating makes of integers. `mixed`: an operand has another dtype than `result_type`.
ElementwiseTypes elementwise_types(Rule rule, DType result_type, DType default_floating, bool mixed = false);

// float32 for the 8 and 16 bit floats, else the dtype itself: where ATen's CPU kernels compute.
DType wide(DType dtype);
// Double precision for single where the plugin is XLA's for the CPU; otherwise wide(dtype). For long sums, which
// PyTorch's kernels for the CPU keep in double too, and for functions that XLA approximates worse than the C library.
DType accurate(DType dtype);
bool is_reduced_floating(DType dtype);

struct UnaryOp {
  std::string_view name;  // "aten::exp"
  Rule rule;
  Expr (*function)(const Expr& x);
};

struct BinaryOp {
  std::string_view name;
  Rule rule;
  Expr (*function)(const Expr& x, const Expr& y);
  std::string_view lhs = "self";
  std::string_view rhs = "other";
};

const std::vector<UnaryOp>& unary_functions();
const std::vector<BinaryOp>& binary_functions();
// The row of `name`; it must exist.
const UnaryOp& unary_function(std::string_view name);
const BinaryOp& binary_function(std::string_view name);

// Applies `op` to `x` of any dtype.
Expr apply(const UnaryOp& op, const Expr& x, DType default_floating);
// Rounds a result computed in types.compute to types.result; a pred, or any other dtype, stays.
Expr finish(const Expr& result, const ElementwiseTypes& types);

// What integers become in floating-point operators: the dtype of output `i` when it is floating, else float32.
DType default_floating(const LoweringContext& ctx, size_t i = 0);
// True when an operand is a number, or a tensor of another dtype than `dtype`.
bool is_mixed(const LoweringContext& ctx, std::initializer_list<std::string_view> names, DType dtype);

// Formulas of several operands, in the dtype of their operands; a missing `value` is 1.
Expr lerp(const Expr& start, const Expr& end, const Expr& weight);
Expr addcmul(const Expr& self, const Expr& tensor1, const Expr& tensor2, const std::optional<Expr>& value);
Expr addcdiv(const Expr& self, const Expr& tensor1, const Expr& tensor2, const std::optional<Expr>& value);
// `self ** exponent`, exact for the exponents that ATen treats by themselves; others are rounded to `type`.
Expr power_static(const Expr& self, double exponent, DType type);
// ATen's pow for any operands of one dtype; negative integer exponents give 0, or +-1 for a base of +-1.
Expr power_dynamic(const Expr& self, const Expr& exponent);
// PyTorch's `+` and `*` of any dtype: on bool they are `or` and `and`.
Expr add_any(const Expr& x, const Expr& y);
Expr multiply_any(const Expr& x, const Expr& y);

}  // namespace torch_pjrt
