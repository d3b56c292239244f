// Reading and writing strided views of a storage's value, as StableHLO.
//
// The table entries that the recorder makes nodes of, with their argument names:
//   xla::strided_read(self, sizes, strides, variant, starts)
//   xla::strided_write(self, value, sizes, strides, variant, starts)
//     `self` is the storage's value, `value` broadcasts to `sizes` and is converted to self's dtype; the result has
//     self's type. `sizes`, `strides` and `variant` (StridedPlan::variant) are attributes, `starts` a scalar list of
//     plan.num_starts ints.
//   xla::bitcast(self, dtype): the bytes of a 1-D value as another dtype, also 1-D; a last incomplete element is
//   dropped. xla::resize_flat(self, numel): a 1-D value cut, or extended by zeros, to `numel` elements.
#pragma once

#include "lazy/strided.h"
#include "stablehlo/builder.h"

namespace torch_pjrt {

// The elements of `base` (dims plan.source) that the view names, with dims plan.sizes. `starts` are plan.num_starts
// scalars of dtype s64.
stablehlo::Value lower_strided_read(stablehlo::Builder& b, stablehlo::Value base, const lazy::StridedPlan& plan,
                                    const stablehlo::Values& starts);

// `base` with these elements replaced by `update` (dims plan.sizes).
stablehlo::Value lower_strided_write(stablehlo::Builder& b, stablehlo::Value base, stablehlo::Value update,
                                     const lazy::StridedPlan& plan, const stablehlo::Values& starts);

// The bytes of `flat` (1-D) as elements of `dtype`.
stablehlo::Value lower_bitcast(stablehlo::Builder& b, stablehlo::Value flat, DType dtype);

}  // namespace torch_pjrt
