// What reductions share: which dimensions go, by PyTorch's rules, the shape that is left, and norms.
#pragma once

#include "ops/expression.h"
#include "ops/lowering.h"

namespace torch_pjrt {

class ReductionDims {
 public:
  // Reads `dim` (an int, a list, None or []) and `keepdim`. None and, unless `empty_is_none` is false, [] mean all.
  ReductionDims(const LoweringContext& ctx, const Dims& dims, bool empty_is_none = true);
  // `reduced`, sorted.
  ReductionDims(const Dims& dims, Dims reduced, bool keepdim);
  // All dimensions.
  explicit ReductionDims(const Dims& dims);
  // `reduced` of the dimensions `dims`, ascending.
  ReductionDims(const Dims& dims, Dims reduced);

  const Dims& reduced() const { return reduced_; }
  // Number of elements that become one.
  int64_t count() const { return count_; }
  // Gives a result without the reduced dimensions its final shape.
  Expr shape(const Expr& result) const;
  // The same with every reduced dimension kept as size 1: broadcasts against the input.
  Expr keep(const Expr& result) const;
  Expr reduce(stablehlo::Reduction reduction, const Expr& x) const;

 private:
  Dims reduced_;
  Dims kept_shape_;
  bool keepdim_ = false;
  int64_t count_ = 1;
};

// sum(magnitude ** ord); with ord 0 the number of nonzero elements.
Expr sum_of_powers(const Expr& magnitude, double ord, const ReductionDims& dims);
// torch.linalg.vector_norm without the final shape; `ord` may be infinite.
Expr vector_norm(const Expr& x, double ord, const ReductionDims& dims);

}  // namespace torch_pjrt
