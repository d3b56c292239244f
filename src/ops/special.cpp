#include "ops/special.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace torch_pjrt {

using stablehlo::Reduction;
using stablehlo::Value;
using stablehlo::Values;

Expr any(const Expr& pred) {
  Dims dims(pred.dims().size());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  return {pred.builder(), pred.builder().reduce(Reduction::kOr, pred, dims)};
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// (1 + 2x) erfcx(x) on [0, inf), in (x - 3.75) / (x + 3.75).
constexpr std::array kErfcx{
    1.1775789345674017,     -0.004590054580646478,  -0.08424913336651792,    0.05920993999819189,
    -0.026658668435305753,  0.009074997670705265,   -0.002413163540417608,   0.0004907758365258086,
    -6.916973302501207e-05, 4.13902798607301e-06,   7.74038306619849e-07,    -2.1886401049234397e-07,
    1.076499946567091e-08,  4.521959811218287e-09,  -7.754400208831351e-10,  -6.318088340886684e-11,
    2.86879501093067e-11,   1.9455868545777347e-13, -9.65469674843344e-13,   3.25254814814874e-14,
    3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624043e-17,
    5.068148904796111e-17,  -2.237056659436e-18,    -2.1873429443030182e-18};

// exp(x^2) erfc(x).
Expr erfcx(const Expr& x) {
  const Expr a = abs(x);
  // As x grows, the map to [-1, 1) would be inf / inf.
  const Expr finite = minimum(a, 1e18);
  const Expr right = chebyshev((finite - 3.75) / (finite + 3.75), kErfcx) / (1.0 + 2.0 * a);
  return select(x < 0.0, 2.0 * exp(x * x) - right, right);
}

// Logarithm of the normal distribution function.
Expr log_ndtr(const Expr& x) {
  const Expr t = x * (1.0 / std::numbers::sqrt2);
  const Expr left = log(erfcx(-t) / 2.0) - t * t;
  return select(x < -1.0, left, log1p(-erfc(t) / 2.0));
}

// Inverse of the normal distribution function: the asymptotic tail, then Newton's steps on the logarithm.
Expr ndtri(const Expr& p) {
  const Expr tail = minimum(p, 1.0 - p);
  const Expr center = (p * 2.0 - 1.0).unary("chlo.erf_inv") * std::numbers::sqrt2;
  const Expr log_tail = log(tail);
  const Expr radius = sqrt(-2.0 * log_tail);
  Expr x = -(radius - log(radius * std::sqrt(2.0 * std::numbers::pi)) / radius);
  const double scale = std::sqrt(2.0 / std::numbers::pi);
  for (int i = 0; i < 4; ++i) {
    const Expr slope = scale / erfcx(x * (-1.0 / std::numbers::sqrt2));
    x = x - (log_ndtr(x) - log_tail) / slope;
  }
  const Expr far = select(tail == 0.0, -kInfinity, x);
  return select(tail < 0.1, select(p > 0.5, -far, far), center);
}

// -x log x, continued by 0 at 0 and by -inf for negative numbers.
Expr entr(const Expr& x) {
  return select(is_nan(x), x, select(x > 0.0, -x * log(x), select(x == 0.0, x.like(0.0), x.like(-kInfinity))));
}

// Sum of (q + k)^-x for k < n where q + n > 9, n >= 9: from there the Euler-Maclaurin tail is exact to the last bit.
struct DirectSum {
  Expr sum;
  Expr end;   // q + n
  Expr last;  // end^-x
};

DirectSum direct_sum(const Expr& x, const Expr& q) {
  stablehlo::Builder& b = x.builder();
  const Expr first = power(q, -x);
  const Expr steps = q.like(0.0);
  const Values state = b.while_loop(
      {x, q, first, first, steps},
      [&](const Values& v) {
        const Expr end(b, v[1]);
        const Expr count(b, v[4]);
        return Values{any((count < 9.0) | (end <= 9.0))};
      },
      [&](const Values& v) {
        const Expr exponent(b, v[0]), end(b, v[1]), sum(b, v[2]), last(b, v[3]), count(b, v[4]);
        const Expr runs = (count < 9.0) | (end <= 9.0);
        const Expr next = end + 1.0;
        const Expr term = power(next, -exponent);
        return Values{exponent, select(runs, next, end), select(runs, sum + term, sum), select(runs, term, last),
                      count + 1.0};
      });
  return {Expr(b, state[2]), Expr(b, state[1]), Expr(b, state[3])};
}

// (2k)! / B_2k of the Euler-Maclaurin formula, k = 1 ... 12.
constexpr std::array kEulerMaclaurin{12.0,
                                     -720.0,
                                     30240.0,
                                     -1209600.0,
                                     47900160.0,
                                     -1892437580.3183791606,
                                     74724249600.0,
                                     -2950130727918.1642244,
                                     116467828143500.67248,
                                     -4597978722407472.6105,
                                     181521054019435467.73,
                                     -7166165256175667011.3};

Expr zeta_formula(const Expr& x, const Expr& q) {
  const auto [sum, end, last] = direct_sum(x, q);
  Expr tail = last * end / (x - 1.0) - 0.5 * last;
  Expr factor = x.like(1.0);
  Expr power_of_end = last;
  double k = 0.0;
  for (const double divisor : kEulerMaclaurin) {
    factor = factor * (x + k);
    power_of_end = power_of_end / end;
    tail = tail + factor * power_of_end / divisor;
    k += 1.0;
    factor = factor * (x + k);
    power_of_end = power_of_end / end;
    k += 1.0;
  }
  // A large exponent leaves nothing of the tail, but infinity times zero in its terms.
  return sum + select((last == 0.0) & (sum != 0.0), 0.0, tail);
}

}  // namespace

// The domain is that of ATen's kernel, which computes in float64 too.
Expr hurwitz_zeta(const Expr& x, const Expr& q) {
  stablehlo::Builder& b = x.builder();
  const auto [x_all, q_all] = b.broadcast_pair(b.convert(x, DType::kF64), b.convert(q, DType::kF64));
  const Expr s(b, x_all);
  const Expr a(b, q_all);
  const Expr is_pole = (a <= 0.0) & (a == floor(a));
  const Expr undefined = (s < 1.0) | ((a <= 0.0) & (s != floor(s)) & ~is_pole);
  const Expr safe = select(is_pole | undefined | is_nan(a) | (s == 1.0), 1.0, a);
  const Expr value = zeta_formula(select(s > 1.0, s, 2.0), safe);
  const Expr defined = select(undefined, kNan, select(is_pole | (s == 1.0), kInfinity, value));
  return select((s < 1.0), kNan, select(is_nan(a) | is_nan(s), kNan, defined)).convert(x.dtype());
}

namespace {

// x^a exp(-x) / Gamma(a).
Expr gamma_density(const Expr& a, const Expr& x) { return exp(a * log(x) - x - lgamma(a)); }

constexpr double kMaxTerms = 2000.0;

// The lower function by its power series, good for x <= a + 1.
Expr igamma_series(const Expr& a, const Expr& x) {
  stablehlo::Builder& b = a.builder();
  const Expr one = a.like(1.0);
  const Values state = b.while_loop(
      {x, a, one, one},
      [&](const Values& v) {
        const Expr term(b, v[2]), sum(b, v[3]);
        return Values{any(term > sum * std::numeric_limits<double>::epsilon())};
      },
      [&](const Values& v) {
        const Expr argument(b, v[0]), divisor(b, v[1]), term(b, v[2]), sum(b, v[3]);
        const Expr next_divisor = divisor + 1.0;
        const Expr next = term * argument / next_divisor;
        return Values{argument, next_divisor, next, sum + next};
      });
  return gamma_density(a, x) * Expr(b, state[3]) / a;
}

// The upper function by Lentz's continued fraction, good for x > a.
Expr igammac_fraction(const Expr& a, const Expr& x) {
  stablehlo::Builder& b = a.builder();
  constexpr double kTiny = 1e-300;
  const Expr start = x + 1.0 - a;
  const Expr d = 1.0 / start;
  const Values state = b.while_loop(
      {a, start, x.like(1.0 / kTiny), d, d, x.like(2.0), x.like(1.0)},
      [&](const Values& v) {
        const Expr change(b, v[5]), count(b, v[6]);
        return Values{any((abs(change - 1.0) > std::numeric_limits<double>::epsilon()) & (count < kMaxTerms))};
      },
      [&](const Values& v) {
        const Expr order(b, v[0]), base(b, v[1]), c(b, v[2]), d(b, v[3]), fraction(b, v[4]), count(b, v[6]);
        const Expr numerator = -count * (count - order);
        const Expr next_base = base + 2.0;
        const Expr d_raw = numerator * d + next_base;
        const Expr c_raw = next_base + numerator / c;
        const Expr next_d = 1.0 / select(abs(d_raw) < kTiny, kTiny, d_raw);
        const Expr next_c = select(abs(c_raw) < kTiny, kTiny, c_raw);
        const Expr change = next_d * next_c;
        return Values{order, next_base, next_c, next_d, fraction * change, change, count + 1.0};
      });
  return gamma_density(a, x) * Expr(b, state[4]);
}

// Both functions in float64, whatever the dtype: exp(a log x - x) loses as many digits as the exponent has.
struct IncompleteGamma {
  Expr lower;
  Expr upper;
};

IncompleteGamma incomplete_gamma(const Expr& a_any, const Expr& x_any) {
  stablehlo::Builder& b = a_any.builder();
  const auto [a_all, x_all] = b.broadcast_pair(b.convert(a_any, DType::kF64), b.convert(x_any, DType::kF64));
  const Expr a(b, a_all);
  const Expr x(b, x_all);
  const Expr regular = (a > 0.0) & (x > 0.0) & (a < kInfinity) & (x < kInfinity);
  const Expr uses_series = regular & (x <= a + 1.0);
  const Expr uses_fraction = regular & (x > a + 1.0);
  const Expr series = igamma_series(select(uses_series, a, 1.0), select(uses_series, x, 1.0));
  const Expr fraction = igammac_fraction(select(uses_fraction, a, 1.0), select(uses_fraction, x, 3.0));
  // Outside, in the order of ATen's kernel: NaN in the argument that does not matter leaves the limit.
  const auto outside = [&](double at_zero_x, double at_infinite_x) {
    const Expr at_large = select(x == kInfinity, at_infinite_x, x.like(kNan));
    const Expr of_large_order = select(x == kInfinity, kNan, x.like(at_zero_x));
    const Expr ordinary = select(x == 0.0, at_zero_x, select(a == kInfinity, of_large_order, at_large));
    const Expr of_order_zero = select(x > 0.0, at_infinite_x, x.like(kNan));
    return select((x < 0.0) | (a < 0.0), kNan, select(a == 0.0, of_order_zero, ordinary));
  };
  return {select(uses_series, series, select(uses_fraction, 1.0 - fraction, outside(0.0, 1.0))),
          select(uses_series, 1.0 - series, select(uses_fraction, fraction, outside(1.0, 0.0)))};
}

}  // namespace

Expr igamma(const Expr& a, const Expr& x) { return incomplete_gamma(a, x).lower.convert(a.dtype()); }
Expr igammac(const Expr& a, const Expr& x) { return incomplete_gamma(a, x).upper.convert(a.dtype()); }

const std::vector<UnaryOp>& special_functions() {
  static const std::vector<UnaryOp> rows = {
      {"aten::special_entr", Rule::kFloating, entr},
      {"aten::special_erfcx", Rule::kFloating, erfcx},
      {"aten::special_log_ndtr", Rule::kFloating, log_ndtr},
      {"aten::special_ndtri", Rule::kFloating, ndtri},
  };
  return rows;
}

namespace {

// ATen's trigamma: reflection into [0.5, inf), six steps up, and the asymptotic series.
Expr trigamma(const Expr& x) {
  const Expr is_reflected = x < 0.5;
  const Expr sine = sin(x * std::numbers::pi);
  Expr y = select(is_reflected, 1.0 - x, x);
  Expr sum = select(is_reflected, -(std::numbers::pi * std::numbers::pi) / (sine * sine), 0.0);
  for (int i = 0; i < 6; ++i) {
    sum = sum + 1.0 / (y * y);
    y = y + 1.0;
  }
  const Expr square = 1.0 / (y * y);
  const Expr tail = (1.0 + 1.0 / (2.0 * y) + square * (1.0 / 6 - square * (1.0 / 30 - square * (1.0 / 42)))) / y;
  return select(is_reflected, -(sum + tail), sum + tail);
}

Values lower_polygamma(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  const auto n = static_cast<double>(ctx.integer("n"));
  const ElementwiseTypes types = elementwise_types(Rule::kFloating, x.dtype(), default_floating(ctx));
  const Expr y = x.convert(types.compute);
  if (n == 0.0) return {finish(unary_function("aten::digamma").function(y), types)};
  if (n == 1.0) return {finish(trigamma(y), types)};
  const double sign = std::fmod(n, 2.0) == 0.0 ? -1.0 : 1.0;
  const Expr factorial = y.like(sign * std::tgamma(n + 1.0));
  return {finish(factorial * hurwitz_zeta(y.like(n + 1.0), y), types)};
}

// log of the multivariate gamma function of dimension p.
Values lower_mvlgamma(LoweringContext& ctx) {
  const Expr x(ctx.b, ctx.tensor("self"));
  const int64_t p = ctx.integer("p");
  const ElementwiseTypes types = elementwise_types(Rule::kAccurate, x.dtype(), default_floating(ctx));
  const Expr y = x.convert(types.compute);
  Expr sum = y.like(static_cast<double>(p * (p - 1)) * std::log(std::numbers::pi) / 4.0);
  for (int64_t i = 0; i < p; ++i) sum = sum + lgamma(y - static_cast<double>(i) / 2.0);
  return {finish(sum, types)};
}

}  // namespace

const OpTable& special_ops() {
  static const OpTable table = {
      {"aten::polygamma", lower_polygamma},
      {"aten::mvlgamma", lower_mvlgamma},
  };
  return table;
}

}  // namespace torch_pjrt
