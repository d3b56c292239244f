#include "stablehlo/builder.h"
#include "stablehlo/golden.h"

namespace torch_pjrt::stablehlo {
namespace {

TEST(Unary, covers_every_mnemonic) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {4}});
  const Value i = b.parameter({DType::kS32, {4}});
  const Value z = b.parameter({DType::kC64, {4}});
  Values values;
  for (const char* name : {"abs",
                           "cbrt",
                           "ceil",
                           "cosine",
                           "exponential",
                           "exponential_minus_one",
                           "floor",
                           "is_finite",
                           "log",
                           "log_plus_one",
                           "logistic",
                           "negate",
                           "round_nearest_afz",
                           "round_nearest_even",
                           "rsqrt",
                           "sign",
                           "sine",
                           "sqrt",
                           "tan",
                           "tanh"}) {
    values.push_back(b.unary(concat("stablehlo.", name), x));
  }
  for (const char* name :
       {"acos", "acosh",   "asin", "asinh",  "atan",       "atanh",      "bessel_i1e", "conj", "cosh",   "digamma",
        "erf",  "erf_inv", "erfc", "is_inf", "is_neg_inf", "is_pos_inf", "lgamma",     "sinh", "square", "tan"}) {
    values.push_back(b.unary(concat("chlo.", name), x));
  }
  for (const char* name : {"abs", "negate", "sign", "not", "popcnt", "count_leading_zeros"}) {
    values.push_back(b.unary(concat("stablehlo.", name), i));
  }
  for (const char* name : {"abs", "exponential", "real", "imag", "sqrt", "log", "negate", "tanh", "sign"}) {
    values.push_back(b.unary(concat("stablehlo.", name), z));
  }
  values.push_back(b.unary("chlo.conj", z));
  values.push_back(b.is_nan(x));
  expect_golden("stablehlo/unary", b.finish(values));
}

TEST(Unary, checks_the_element_type) {
  Builder b;
  const Value i = b.parameter({DType::kS32, {4}});
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.exponential: unsupported element type: s32[4]",
               [&] { b.exp(i); });
  expect_error(ErrorCode::kInvalidArgument, "chlo.erf: unsupported element type: s32[4]",
               [&] { b.unary("chlo.erf", i); });
  EXPECT_THROW(b.unary("stablehlo.nonsense", i), Error);
}

TEST(Binary, covers_every_mnemonic) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {4}});
  const Value y = b.parameter({DType::kF32, {4}});
  const Value i = b.parameter({DType::kS32, {4}});
  const Value p = b.parameter({DType::kPred, {4}});
  Values values;
  for (const char* name :
       {"add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract"}) {
    values.push_back(b.binary(concat("stablehlo.", name), x, y));
  }
  for (const char* name : {"next_after", "polygamma", "zeta"}) {
    values.push_back(b.binary(concat("chlo.", name), x, y));
  }
  for (const char* name : {"and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical"}) {
    values.push_back(b.binary(concat("stablehlo.", name), i, i));
  }
  for (const char* name : {"add", "multiply", "maximum", "minimum", "and", "or", "xor"}) {
    values.push_back(b.binary(concat("stablehlo.", name), p, p));
  }
  values.push_back(b.complex(x, y));
  values.push_back(b.reduce_precision(x, 5, 10));
  expect_golden("stablehlo/binary", b.finish(values));
}

TEST(Binary, checks_that_operand_types_agree) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {4}});
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.add: operands must have the same type: f32[4] and f32[5]",
               [&] { b.add(x, b.parameter({DType::kF32, {5}})); });
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.and: unsupported element type: f32[4]",
               [&] { b.logical_and(x, x); });
}

TEST(Compare, chooses_the_comparison_by_dtype) {
  Builder b;
  Values values;
  for (const DType dtype : {DType::kF32, DType::kS32, DType::kU8, DType::kPred}) {
    const Value x = b.parameter({dtype, {4}});
    const Value y = b.parameter({dtype, {4}});
    for (const Comparison direction :
         {Comparison::kEq, Comparison::kNe, Comparison::kGe, Comparison::kGt, Comparison::kLe, Comparison::kLt}) {
      values.push_back(b.compare(direction, x, y));
    }
  }
  const Value z = b.parameter({DType::kC64, {4}});
  values.push_back(b.compare(Comparison::kEq, z, z));
  const Value d = b.parameter({DType::kF64, {}});
  values.push_back(b.compare(Comparison::kLt, d, d, CompareType::kTotalOrder));
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.compare: complex numbers have no order: c64[4]",
               [&] { b.compare(Comparison::kLt, z, z); });
  expect_golden("stablehlo/compare", b.finish(values));
}

TEST(Select, takes_scalar_and_full_predicates) {
  Builder b;
  const Value p = b.parameter({DType::kPred, {4}});
  const Value scalar = b.parameter({DType::kPred, {}});
  const Value x = b.parameter({DType::kF32, {4}});
  const Value y = b.parameter({DType::kF32, {4}});
  const Value low = b.constant(-1.0, DType::kF32);
  EXPECT_EQ(b.select(p, x, x), x);
  expect_error(ErrorCode::kInvalidArgument,
               "stablehlo.select: pred must be a scalar or have the operands' dims: pred[3] for f32[4]",
               [&] { b.select(b.parameter({DType::kPred, {3}}), x, y); });
  expect_error(ErrorCode::kInvalidArgument,
               "stablehlo.clamp: a bound must be a scalar or have the operand's dims, and its dtype: f64[] for f32[4]",
               [&] { b.clamp(b.parameter({DType::kF64, {}}), x, y); });
  expect_golden("stablehlo/select",
                b.finish({b.select(p, x, y), b.select(scalar, x, y), b.clamp(low, x, y), b.clamp(x, x, y)}));
}

TEST(Convert, follows_the_numeric_rules) {
  Builder b;
  constexpr DType kAll[] = {DType::kPred, DType::kU8,  DType::kS32, DType::kS64, DType::kF16,
                            DType::kBF16, DType::kF32, DType::kF64, DType::kC64, DType::kC128};
  Values values;
  for (const DType from : kAll) {
    const Value x = b.parameter({from, {3}});
    EXPECT_EQ(b.convert(x, from), x);
    for (const DType to : kAll) {
      if (to == from) continue;
      values.push_back(b.convert(x, to));
      EXPECT_EQ(values.back().type(), (TensorType{to, {3}}));
    }
  }
  for (const DType narrow : {DType::kF8E4M3FN, DType::kF8E5M2}) {
    const Value x = b.parameter({narrow, {3}});
    values.push_back(b.convert(x, DType::kF32));
    values.push_back(b.convert(values.back(), narrow));
  }
  expect_golden("stablehlo/convert", b.finish(values));
}

TEST(BitcastConvert, splits_and_merges_the_last_dimension) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {3}});
  const Value bytes = b.bitcast_convert(x, DType::kU8);
  EXPECT_EQ(bytes.type(), (TensorType{DType::kU8, {3, 4}}));
  expect_error(ErrorCode::kInvalidArgument,
               "stablehlo.bitcast_convert: the last dimension must hold one element of the wider type: f32[3] to f64",
               [&] { b.bitcast_convert(x, DType::kF64); });
  expect_golden("stablehlo/bitcast_convert",
                b.finish({bytes, b.bitcast_convert(x, DType::kU32), b.bitcast_convert(bytes, DType::kS32)}));
}

}  // namespace
}  // namespace torch_pjrt::stablehlo
