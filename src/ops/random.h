// Counter-based random numbers: Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3").
//
// Element i of a call is a function of (seed, offset + i) alone, made of elementwise operations: the same on every
// plugin, wherever a graph is cut, and fused into whatever consumes it.
#pragma once

#include "ops/expression.h"
#include "ops/lowering.h"

namespace torch_pjrt {

// 64 random bits for each element, as two ui32 words.
struct RandomWords {
  Expr first, second;
};

// `stream` tells apart several numbers for one element of one call.
RandomWords random_words(LoweringContext& ctx, const Dims& dims, uint32_t stream = 0);
// The same where a call needs more numbers than its output has elements: its own sequence, keyed by (seed, offset).
RandomWords private_random_words(LoweringContext& ctx, const Dims& dims);

// Floating numbers of `dtype` in [0, 1), with as many bits as the dtype's significand has.
Expr unit_interval(const RandomWords& words, DType dtype);
// In (0, 1), symmetric about 1/2. `dtype` is f32 or f64.
Expr open_unit_interval(const RandomWords& words, DType dtype);
// Standard normal. `dtype` is f32 or f64.
Expr standard_normal(const RandomWords& words, DType dtype);

}  // namespace torch_pjrt
