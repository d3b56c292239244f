// Operators that take numbers from a generator.
#include "ops/random.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/elementwise.h"
#include "ops/indexing.h"
#include "ops/registry.h"
#include "ops/sort.h"
#include "ops/value_check.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Comparison;
using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

namespace {

// Where distributions are computed: f64 for f64, else f32.
DType compute_dtype(DType dtype) { return real_dtype(dtype) == DType::kF64 ? DType::kF64 : DType::kF32; }

Expr number(LoweringContext& ctx, std::string_view name, DType dtype, double fallback) {
  return {ctx.b, ctx.number(name, dtype, fallback)};
}

Values lower_uniform(LoweringContext& ctx) {
  const TensorType& type = ctx.output();
  const DType part = real_dtype(type.dtype), compute = compute_dtype(part);
  const Expr from = number(ctx, "from", compute, 0.0), to = number(ctx, "to", compute, 1.0);
  const auto draw = [&](uint32_t stream) {
    const Expr unit = unit_interval(random_words(ctx, type.dims, stream), part).convert(compute);
    const Expr x = (unit * (to - from) + from).convert(part);
    // Rounding may reach the end, which is outside.
    return select(x == to.convert(part), from.convert(part), x);
  };
  if (is_complex(type.dtype)) return {complex(draw(0), draw(1))};
  return {draw(0)};
}

// N(0, 1) of a real compute dtype or, when `dtype` is complex, with that variance in total.
Expr draw_normal(LoweringContext& ctx, const TensorType& type) {
  const DType compute = compute_dtype(type.dtype);
  const Expr real = standard_normal(random_words(ctx, type.dims), compute);
  if (!is_complex(type.dtype)) return real;
  const Expr imag = standard_normal(random_words(ctx, type.dims, 1), compute);
  return complex(real, imag) * std::numbers::sqrt2 / 2.0;
}

Expr normal_sample(LoweringContext& ctx, double mean, double std) {
  const TensorType& type = ctx.output();
  const Expr z = draw_normal(ctx, type);
  if (ctx.is_tensor("std")) {
    const Expr deviation(ctx.b, ctx.tensor("std"));
    require(ctx.b, deviation >= 0.0, "normal expects all elements of std >= 0.0");
  }
  return z * number(ctx, "std", z.dtype(), std) + number(ctx, "mean", z.dtype(), mean);
}

Values lower_normal(LoweringContext& ctx) { return {normal_sample(ctx, 0.0, 1.0)}; }
Values lower_log_normal(LoweringContext& ctx) { return {exp(normal_sample(ctx, 1.0, 2.0))}; }

// True with probability `p`, exact to 2^-32 for a number and to the dtype's precision for a tensor.
Expr draw_bernoulli(LoweringContext& ctx, const Dims& dims, const Expr& p) {
  const RandomWords words = random_words(ctx, dims);
  if (!p.dims().empty()) {
    const DType compute = compute_dtype(p.dtype());
    return unit_interval(words, compute) < p.convert(compute);
  }
  const Expr wide = p.convert(DType::kF64);
  const Expr threshold = minimum(maximum(wide * 0x1p32, 0.0), 0x1p32 - 1.0).convert(DType::kU32);
  return (words.first < threshold) | (wide >= 1.0);
}

Values lower_bernoulli(LoweringContext& ctx) {
  const std::string_view name = ctx.has("p") ? "p" : "self";
  const Expr p(ctx.b, ctx.is_tensor(name) ? ctx.tensor(name) : ctx.operand(name, DType::kF64));
  if (!is_floating(p.dtype())) ctx.decline("probabilities must be floating");
  require(ctx.b, ((p >= p.like(0.0)) & (p <= p.like(1.0))).value(),
          "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, "
          "please report an enhancement request to PyTorch.)");
  return {draw_bernoulli(ctx, ctx.output().dims, p)};
}

// Integers in [0, range); `range` 0 is 2^64.
Expr draw_integers(LoweringContext& ctx, const Dims& dims, uint64_t range) {
  Builder& b = ctx.b;
  const RandomWords words = random_words(ctx, dims);
  const Expr high = words.first.convert(DType::kU64), low = words.second.convert(DType::kU64);
  const Expr thirty_two = high.like(32.0);
  const auto constant = [&](uint64_t value) {
    return Expr(b, b.splat(static_cast<int64_t>(value), {DType::kU64, dims}));
  };
  if (range != 0 && range <= uint64_t{1} << 32) {
    return (high * constant(range)).binary("stablehlo.shift_right_logical", thirty_two);
  }
  const Expr all = high.binary("stablehlo.shift_left", thirty_two) | low;
  return range == 0 ? all : fmod(all, constant(range));
}

// Largest integer that random_ without bounds gives: the dtype's own, or the last that a float counts exactly.
int64_t largest_integer(DType dtype) {
  switch (dtype) {
    case DType::kPred:
      return 1;
    case DType::kU8:
      return std::numeric_limits<uint8_t>::max();
    case DType::kS8:
      return std::numeric_limits<int8_t>::max();
    case DType::kU16:
      return std::numeric_limits<uint16_t>::max();
    case DType::kS16:
      return std::numeric_limits<int16_t>::max();
    case DType::kU32:
      return std::numeric_limits<uint32_t>::max();
    case DType::kS32:
      return std::numeric_limits<int32_t>::max();
    case DType::kF16:
      return int64_t{1} << 11;
    case DType::kBF16:
      return int64_t{1} << 8;
    case DType::kF32:
      return int64_t{1} << 24;
    case DType::kF64:
      return int64_t{1} << 53;
    default:
      return std::numeric_limits<int64_t>::max();
  }
}

// random_(), random_(to) and random_(from, to); without `to` the dtype's largest integer is included.
Values lower_random(LoweringContext& ctx) {
  const TensorType& type = ctx.output();
  const int64_t from = ctx.integer("from", 0), largest = largest_integer(type.dtype);
  if (ctx.has("to")) {
    const int64_t to = ctx.integer("to");
    const bool fits = is_floating(type.dtype) || (to - 1 <= largest && (is_signed(type.dtype) || from >= 0));
    if (from >= to || !fits) ctx.decline("no numbers between the bounds, or beyond the dtype");
  }
  const uint64_t last = ctx.has("to") ? static_cast<uint64_t>(ctx.integer("to")) - 1 : static_cast<uint64_t>(largest);
  const Expr drawn = draw_integers(ctx, type.dims, last - static_cast<uint64_t>(from) + 1).convert(DType::kS64);
  const Expr start(ctx.b, ctx.b.splat(from, drawn.value().type()));
  return {(drawn + start).convert(type.dtype)};
}

// Sorts by random keys.
Values lower_randperm(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const TensorType& type = ctx.output();
  const Expr at(b, b.iota({DType::kS64, type.dims}, 0));
  if (type.numel() <= 1) return {at};
  if (type.numel() - 1 > largest_integer(type.dtype)) ctx.decline("the dtype does not hold ", type.numel() - 1);
  const RandomWords words = random_words(ctx, type.dims);
  const Expr high = words.first.convert(DType::kU64);
  const Expr key = high.binary("stablehlo.shift_left", high.like(32.0)) | words.second.convert(DType::kU64);
  return {b.sort({key, at}, 0, true, [&](const Values& arguments) {
    return Values{b.compare(Comparison::kLt, arguments[0], arguments[1])};
  })[1]};
}

Expr draw_open(LoweringContext& ctx) {
  const TensorType& type = ctx.output();
  return open_unit_interval(random_words(ctx, type.dims), compute_dtype(type.dtype));
}

Values lower_exponential(LoweringContext& ctx) {
  const Expr u = draw_open(ctx);
  return {-log(u) / number(ctx, "lambd", u.dtype(), 1.0)};
}

Values lower_cauchy(LoweringContext& ctx) {
  const Expr u = draw_open(ctx);
  const Expr angle = (u - 0.5) * std::numbers::pi;
  return {number(ctx, "median", u.dtype(), 0.0) + number(ctx, "sigma", u.dtype(), 1.0) * sin(angle) / cos(angle)};
}

// How many trials until the first success.
Values lower_geometric(LoweringContext& ctx) {
  const Expr u = draw_open(ctx);
  const Expr trials = ceil(log(u) / log1p(-number(ctx, "p", u.dtype(), 0.5)));
  return {maximum(trials, 1.0)};
}

// `probabilities` [rows, n] -> [rows, samples], by inverting the cumulative distribution.
Value sample_with_replacement(LoweringContext& ctx, const Expr& probabilities, int64_t samples) {
  Builder& b = ctx.b;
  const int64_t rows = probabilities.dims()[0], n = probabilities.dims()[1];
  const Expr cumulative(b, scan(b, Reduction::kAdd, probabilities, 1));
  const Expr total(b, b.slice_dim(cumulative, 1, n - 1, n));
  const Expr target = unit_interval(random_words(ctx, {rows, samples}), probabilities.dtype()) * total;
  const Expr row(b, b.iota({index_dtype(rows * n + n), {rows, samples}}, 0));
  const Expr index = binary_search(cumulative, std::nullopt, n, row * static_cast<double>(n), target, true);
  const Expr chosen = minimum(index, static_cast<double>(n - 1));
  // Rounding must not choose an impossible category: it becomes the likeliest one.
  const Expr at = positions(b, {rows, n}, 1);
  const Expr largest(b, b.reshape(b.reduce(Reduction::kMax, probabilities, {1}), {rows, 1}));
  const Value is_likeliest = select(probabilities == largest, at, static_cast<double>(n));
  const Expr likeliest(b, b.reshape(b.reduce(Reduction::kMin, is_likeliest, {1}), {rows, 1}));
  const Expr is_possible = Expr(b, gather_along(b, probabilities, 1, chosen)) > 0.0;
  return select(is_possible, chosen.convert(likeliest.dtype()), likeliest);
}

// The order of exponential arrival times with rates `probabilities` is a sample without replacement.
Value sample_without_replacement(LoweringContext& ctx, const Expr& probabilities, int64_t samples) {
  const RandomWords words = private_random_words(ctx, probabilities.dims());
  const Expr log_times = log(-log(open_unit_interval(words, probabilities.dtype())));
  return top_along(ctx.b, (log(probabilities) - log_times).convert(DType::kF32), 1, samples, true).indices;
}

Values lower_multinomial(LoweringContext& ctx) {
  const Value self = ctx.tensor("self");
  if (!is_floating(self.dtype())) ctx.decline("probabilities must be floating");
  const int64_t samples = ctx.integer("num_samples"), n = self.dims().back();
  const Expr probabilities(ctx.b,
                           ctx.b.convert(ctx.b.reshape(self, {self.numel() / n, n}), compute_dtype(self.dtype())));
  const double infinity = std::numeric_limits<double>::infinity();
  require(ctx.b, ((probabilities >= 0.0) & (probabilities < infinity)).value(),
          "probability tensor contains either `inf`, `nan` or element < 0");
  require(ctx.b, (Expr(ctx.b, ctx.b.reduce(Reduction::kAdd, probabilities.value(), {1})) != 0.0).value(),
          "invalid multinomial distribution (sum of probabilities <= 0)");
  const Value drawn = ctx.flag("replacement") ? sample_with_replacement(ctx, probabilities, samples)
                                              : sample_without_replacement(ctx, probabilities, samples);
  return {ctx.b.convert(ctx.b.reshape(drawn, ctx.output().dims), DType::kS64)};
}

Values lower_native_dropout(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Expr input(b, ctx.tensor("input"));
  if (ctx.has("train") && !ctx.flag("train")) return {input, b.splat(true, {DType::kPred, input.dims()})};
  const Expr p(b, ctx.operand("p", DType::kF64));
  const Expr mask = draw_bernoulli(ctx, input.dims(), 1.0 - p);
  const DType compute = wide(input.dtype());
  const Expr scale = select(p == 1.0, 0.0, 1.0 / (1.0 - p)).convert(compute);
  const Expr kept = select(mask, input.convert(compute) * scale, 0.0);
  return {kept.convert(input.dtype()), mask};
}

Values lower_native_dropout_backward(LoweringContext& ctx) {
  const Expr grad_output(ctx.b, ctx.tensor("grad_output"));
  const DType compute = wide(ctx.output().dtype);  // of integers, too, a floating-point one
  const Expr scale(ctx.b, ctx.operand("scale", compute));
  const Expr mask = Expr(ctx.b, ctx.tensor("mask")).convert(DType::kPred);
  return {select(mask, grad_output.convert(compute) * scale, 0.0).convert(ctx.output().dtype)};
}

// Training draws each negative slope into `noise`, which is 1 elsewhere.
Values lower_rrelu_with_noise(LoweringContext& ctx) {
  Builder& b = ctx.b;
  const Expr self(b, ctx.tensor("self")), noise(b, ctx.tensor("noise"));
  const DType compute = wide(self.dtype());
  const Expr x = self.convert(compute);
  const Expr lower = number(ctx, "lower", compute, 0.125), upper = number(ctx, "upper", compute, 1.0 / 3.0);
  if (!ctx.flag("training")) return {select(x > 0.0, x, x * ((lower + upper) / 2.0)), noise};
  const Expr slope = unit_interval(random_words(ctx, self.dims()), compute) * (upper - lower) + lower;
  const Expr drawn = select(x <= 0.0, slope, 1.0);
  return {(x * drawn).convert(self.dtype()), drawn.convert(noise.dtype())};
}

}  // namespace

const OpTable& random_ops() {
  static const OpTable table = {
      {.name = "aten::uniform", .lower = lower_uniform, .unread = {"self"}, .random = true},
      {.name = "aten::normal", .lower = lower_normal, .unread = {"self"}, .random = true},
      {.name = "aten::normal_functional", .lower = lower_normal, .unread = {"self"}, .random = true},
      {.name = "aten::log_normal", .lower = lower_log_normal, .unread = {"self"}, .random = true},
      {.name = "aten::bernoulli", .lower = lower_bernoulli, .random = true},
      {.name = "aten::random", .lower = lower_random, .unread = {"self"}, .random = true},
      {.name = "aten::randperm", .lower = lower_randperm, .random = true},
      {.name = "aten::exponential", .lower = lower_exponential, .unread = {"self"}, .random = true},
      {.name = "aten::cauchy", .lower = lower_cauchy, .unread = {"self"}, .random = true},
      {.name = "aten::geometric", .lower = lower_geometric, .unread = {"self"}, .random = true},
      {.name = "aten::multinomial", .lower = lower_multinomial, .random = true},
      {.name = "aten::native_dropout", .lower = lower_native_dropout, .random = true},
      {.name = "aten::native_dropout_backward", .lower = lower_native_dropout_backward},
      {.name = "aten::rrelu_with_noise", .lower = lower_rrelu_with_noise, .random = true},
      {.name = "aten::rrelu_with_noise_functional", .lower = lower_rrelu_with_noise, .random = true},
  };
  return table;
}

}  // namespace torch_pjrt
