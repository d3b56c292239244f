#include <array>
#include <cmath>
#include <numbers>

#include "ops/random.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Value;

namespace {

constexpr uint32_t kParity = 0x1BD11BDA;
constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};

Expr low_word(const Expr& x) { return x.convert(DType::kU32); }
Expr high_word(const Expr& x) { return x.binary("stablehlo.shift_right_logical", x.like(32.0)).convert(DType::kU32); }

Expr word(Builder& b, int64_t value) { return {b, b.constant(value, DType::kU32)}; }

// Twenty rounds over words of one size; `key` is scalar.
class Threefry {
 public:
  Threefry(Builder& builder, const Dims& dims) : b_(builder), dims_(dims) {}

  RandomWords operator()(const RandomWords& key, const RandomWords& counter) {
    const std::array<Expr, 3> keys = {key.first, key.second, key.first ^ key.second ^ word(b_, kParity)};
    Expr x = counter.first + keys[0], y = counter.second + keys[1];
    for (int group = 0; group < 5; ++group) {
      for (const int bits : kRotations[group % 2]) {
        x = x + y;
        y = rotate_left(y, bits) ^ x;
      }
      x = x + keys[(group + 1) % 3];
      y = y + (keys[(group + 2) % 3] + word(b_, group + 1));
    }
    return {x, y};
  }

 private:
  Expr rotate_left(const Expr& x, int bits) {
    return x.binary("stablehlo.shift_left", splat(bits)) | x.binary("stablehlo.shift_right_logical", splat(32 - bits));
  }

  // The rotations come back every eight rounds: each constant is emitted once.
  Expr splat(int bits) {
    Value& value = splats_[static_cast<size_t>(bits)];
    if (!value) value = b_.splat(int64_t{bits}, {DType::kU32, dims_});
    return {b_, value};
  }

  Builder& b_;
  const Dims& dims_;
  std::array<Value, 32> splats_;
};

RandomWords split(const Expr& x) { return {low_word(x), high_word(x)}; }

// first, first + 1, ... in row-major order.
Expr counters(Builder& b, const Expr& first, const Dims& dims) {
  const Expr flat(b, b.iota({DType::kU64, {product(dims)}}, 0));
  return {b, b.reshape(first + flat, dims)};
}

}  // namespace

RandomWords random_words(LoweringContext& ctx, const Dims& dims, uint32_t stream) {
  const Expr seed(ctx.b, ctx.seed()), offset(ctx.b, ctx.offset());
  RandomWords key = split(seed);
  if (stream != 0) key.second = key.second ^ word(ctx.b, (stream * int64_t{0x9E3779B9}) & 0xFFFFFFFF);
  return Threefry(ctx.b, dims)(key, split(counters(ctx.b, offset, dims)));
}

RandomWords private_random_words(LoweringContext& ctx, const Dims& dims) {
  const RandomWords drawn = random_words(ctx, {}, 0xFFFFFFFF);
  // Else the key is computed again for each element, and LLVM does not come to an end where the last one is alone.
  const stablehlo::Values apart = ctx.b.optimization_barrier({drawn.first, drawn.second});
  const RandomWords key{{ctx.b, apart[0]}, {ctx.b, apart[1]}};
  const Expr zero(ctx.b, ctx.b.constant(0, DType::kU64));
  return Threefry(ctx.b, dims)(key, split(counters(ctx.b, zero, dims)));
}

namespace {

// The upper `bits` bits of the element's words, as an integer below 2^bits.
Expr upper_bits(const RandomWords& words, int bits) {
  if (bits <= 32) return words.first.binary("stablehlo.shift_right_logical", words.first.like(32.0 - bits));
  const Expr high = words.first.convert(DType::kU64), low = words.second.convert(DType::kU64);
  const Expr all = high.binary("stablehlo.shift_left", high.like(32.0)) | low;
  return all.binary("stablehlo.shift_right_logical", all.like(64.0 - bits));
}

int significand_bits(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 53;
    case DType::kF32:
      return 24;
    case DType::kF16:
      return 11;
    case DType::kBF16:
      return 8;
    default:
      TP_CHECK(false, "no random numbers of ", hlo_name(dtype));
  }
}

}  // namespace

Expr unit_interval(const RandomWords& words, DType dtype) {
  const int bits = significand_bits(dtype);
  const DType compute = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  return (upper_bits(words, bits).convert(compute) * std::ldexp(1.0, -bits)).convert(dtype);
}

Expr open_unit_interval(const RandomWords& words, DType dtype) {
  // One bit less than the significand, so that the half is exact.
  const int bits = significand_bits(dtype) - 1;
  return (upper_bits(words, bits).convert(dtype) + 0.5) * std::ldexp(1.0, -bits);
}

Expr standard_normal(const RandomWords& words, DType dtype) {
  const Expr symmetric = open_unit_interval(words, dtype) * 2.0 - 1.0;
  return symmetric.unary("chlo.erf_inv") * std::numbers::sqrt2;
}

}  // namespace torch_pjrt
