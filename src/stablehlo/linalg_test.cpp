#include "stablehlo/builder.h"
#include "stablehlo/golden.h"

namespace torch_pjrt::stablehlo {
namespace {

TEST(DotGeneral, orders_batch_then_free_dimensions) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {5, 2, 3}});
  const Value y = b.parameter({DType::kF32, {3, 5, 4}});
  const Value batched =
      b.dot_general(x, y, {.lhs_batch = {0}, .rhs_batch = {1}, .lhs_contracting = {2}, .rhs_contracting = {0}});
  EXPECT_EQ(batched.dims(), (Dims{5, 2, 4}));
  const Value outer = b.dot_general(x, y, {});
  EXPECT_EQ(outer.dims(), (Dims{5, 2, 3, 3, 5, 4}));
  const Value v = b.parameter({DType::kBF16, {3}});
  const Value wide = b.dot_general(v, v, {.lhs_contracting = {0}, .rhs_contracting = {0}}, DType::kF32);
  const Value i = b.parameter({DType::kS64, {3, 3}});
  const Value integers = b.dot_general(i, i, {.lhs_contracting = {1}, .rhs_contracting = {0}});
  expect_golden("stablehlo/dot_general", b.finish({batched, outer, wide, integers}));
}

TEST(DotGeneral, checks_sizes) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {2, 3}});
  expect_error(ErrorCode::kInvalidArgument,
               "stablehlo.dot_general: contracting dimensions must agree: [1] of f32[2,3] and [0] of f32[2,3]",
               [&] { b.dot_general(x, x, {.lhs_contracting = {1}, .rhs_contracting = {0}}); });
}

TEST(Factorization, covers_cholesky_and_triangular_solve) {
  Builder b;
  const Value a = b.parameter({DType::kF32, {2, 3, 3}});
  const Value rhs = b.parameter({DType::kF32, {2, 3, 4}});
  const Value z = b.parameter({DType::kC64, {3, 3}});
  expect_error(ErrorCode::kInvalidArgument, "stablehlo.cholesky: the matrices must be square: f32[2,3,4]",
               [&] { b.cholesky(rhs, true); });
  expect_golden(
      "stablehlo/factorization",
      b.finish({b.cholesky(a, true), b.cholesky(z, false), b.triangular_solve(a, rhs, true, true, false, false),
                b.triangular_solve(a, b.transpose(rhs, {0, 2, 1}), false, false, true, true),
                b.triangular_solve(z, z, true, true, false, true, true)}));
}

TEST(Fft, infers_half_sizes) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {2, 8}});
  const Value z = b.fft(x, FftType::kRfft, {8});
  EXPECT_EQ(z.type(), (TensorType{DType::kC64, {2, 5}}));
  const Value real = b.fft(z, FftType::kIrfft, {8});
  EXPECT_EQ(real.type(), x.type());
  expect_golden("stablehlo/fft", b.finish({z, real, b.fft(z, FftType::kFft, {2, 5}), b.fft(z, FftType::kIfft, {5})}));
}

}  // namespace
}  // namespace torch_pjrt::stablehlo
