// What activation functions and their derivatives share: reading arguments in the dtype in which ATen's CPU kernels
// compute.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "ops/elementwise.h"

namespace torch_pjrt {

class ActivationContext {
 public:
  ActivationContext(LoweringContext& ctx, std::initializer_list<std::string_view> tensors, Rule rule = Rule::kWide);

  // A tensor or number argument in the compute dtype.
  Expr operator()(std::string_view name) const;
  Expr number(std::string_view name, double fallback) const;
  // Rounds to the result dtype.
  stablehlo::Values finish(const Expr& result) const;

 private:
  LoweringContext& ctx_;
  ElementwiseTypes types_;
};

// The two halves of `x` along `dim`, which may be negative.
std::pair<Expr, Expr> split_halves(const Expr& x, int64_t dim);

}  // namespace torch_pjrt
