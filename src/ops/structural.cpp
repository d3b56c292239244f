// Nodes that the recorder makes itself: they hold storages together and have no ATen operator.
#include "ops/registry.h"

namespace torch_pjrt {
namespace {

using stablehlo::Values;

// self, permutation: int[]
Values lower_transpose(LoweringContext& ctx) { return {ctx.b.transpose(ctx.tensor("self"), ctx.ints("permutation"))}; }

// A storage that was never written reads as zeros.
Values lower_zeros(LoweringContext& ctx) { return {ctx.b.splat(0, ctx.output())}; }

// Broadcasts self to the output's sizes by PyTorch's rule.
Values lower_expand(LoweringContext& ctx) { return {ctx.b.broadcast_to(ctx.tensor("self"), ctx.output().dims)}; }

// self, dims: int[]; the same elements in row-major order.
Values lower_reshape(LoweringContext& ctx) { return {ctx.b.reshape(ctx.tensor("self"), ctx.ints("dims"))}; }

Values lower_conj(LoweringContext& ctx) {
  const auto self = ctx.tensor("self");
  return {ctx.b.complex(ctx.b.real(self), ctx.b.negate(ctx.b.imag(self)))};
}

Values lower_negate(LoweringContext& ctx) { return {ctx.b.negate(ctx.tensor("self"))}; }

Values lower_optimization_barrier(LoweringContext& ctx) { return ctx.b.optimization_barrier(ctx.tensors("tensors")); }

// self, after a check that threw nothing: the check is in every program that computes this.
Values lower_checked(LoweringContext& ctx) { return {ctx.tensor("self")}; }

}  // namespace

const OpTable& structural_ops() {
  static const OpTable table{
      {.name = "xla::transpose", .lower = lower_transpose},
      {.name = "xla::zeros", .lower = lower_zeros},
      {.name = "xla::expand", .lower = lower_expand},
      {.name = "xla::reshape", .lower = lower_reshape},
      {.name = "xla::conj", .lower = lower_conj},
      {.name = "xla::negate", .lower = lower_negate},
      {.name = "xla::optimization_barrier", .lower = lower_optimization_barrier},
      {.name = "xla::checked", .lower = lower_checked},
  };
  return table;
}

}  // namespace torch_pjrt
