// Interpolation: nearest, linear and cubic, along each spatial dimension by itself, with the index arithmetic of ATen's
// CPU kernels.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "ops/elementwise.h"
#include "ops/registry.h"
#include "ops/resample.h"

namespace torch_pjrt {

using stablehlo::Value;
using stablehlo::Values;

namespace {

struct Line {
  int64_t input, output;
  std::optional<double> scale;  // as given by the caller, output over input
};

// Where output `i` lies on the input line; Real is the type that ATen computes it in.
template <typename Real>
class Source {
 public:
  Source(const Line& line, bool align_corners) : align_corners_(align_corners) {
    if (align_corners) {
      scale_ = line.output > 1 ? static_cast<Real>(line.input - 1) / static_cast<Real>(line.output - 1) : Real(0);
    } else {
      scale_ = line.scale && *line.scale > 0 ? static_cast<Real>(1.0 / *line.scale)
                                             : static_cast<Real>(line.input) / static_cast<Real>(line.output);
    }
  }
  Real at(int64_t i) const {
    const auto position = static_cast<Real>(i);
    return align_corners_ ? scale_ * position : scale_ * (position + Real(0.5)) - Real(0.5);
  }

  Real scale() const { return scale_; }

 private:
  bool align_corners_;
  Real scale_;
};

// ATen's backward kernels round differently: in float32, and without looking at the scale where the sizes say enough.
Taps nearest_backward_taps(const Line& line, bool is_exact) {
  const float scale = Source<float>(line, false).scale();
  Taps taps(line.input);
  for (int64_t i = 0; i < line.output; ++i) {
    int64_t index = i;
    if (is_exact) {
      index = static_cast<int64_t>(std::floor((static_cast<float>(i) + 0.5f) * scale));
    } else if (line.output == 2 * line.input) {
      index = i / 2;
    } else if (line.output != line.input) {
      index = static_cast<int64_t>(std::floor(static_cast<float>(i) * scale));
    }
    taps.add({{std::min(index, line.input - 1), 1.0}});
  }
  return taps;
}

template <typename Real>
Taps nearest_taps(const Line& line, bool is_exact) {
  const Source<Real> source(line, false);
  Taps taps(line.input);
  for (int64_t i = 0; i < line.output; ++i) {
    const Real at = is_exact ? source.at(i) + Real(0.5) : source.scale() * static_cast<Real>(i);
    taps.add({{std::min(static_cast<int64_t>(std::floor(at)), line.input - 1), 1.0}});
  }
  return taps;
}

template <typename Real>
Taps linear_taps(const Line& line, bool align_corners) {
  const Source<Real> source(line, align_corners);
  Taps taps(line.input);
  for (int64_t i = 0; i < line.output; ++i) {
    if (line.input == line.output) {
      taps.add({{i, 1.0}});
      continue;
    }
    const Real at = std::max(source.at(i), Real(0));
    const int64_t low = std::min(static_cast<int64_t>(at), line.input - 1);
    const int64_t high = std::min(low + 1, line.input - 1);
    const Real weight = std::clamp(at - static_cast<Real>(low), Real(0), Real(1));
    taps.add({{low, Real(1) - weight}, {high, weight}});
  }
  return taps;
}

// The cubic convolution kernel with a = -0.75.
template <typename Real>
Real cubic_near(Real x) {
  constexpr Real a = Real(-0.75);
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <typename Real>
Real cubic_far(Real x) {
  constexpr Real a = Real(-0.75);
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

template <typename Real>
Taps cubic_taps(const Line& line, bool align_corners) {
  const Source<Real> source(line, align_corners);
  Taps taps(line.input);
  for (int64_t i = 0; i < line.output; ++i) {
    const Real at = source.at(i);
    const auto low = std::min(static_cast<int64_t>(std::floor(at)), line.input - 1);
    const Real t = std::clamp(at - static_cast<Real>(low), Real(0), Real(1));
    const Real weights[4] = {cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t)};
    std::vector<Tap> row;
    for (int64_t k = 0; k < 4; ++k) {
      row.push_back({std::clamp<int64_t>(low - 1 + k, 0, line.input - 1), weights[k]});
    }
    taps.add(std::move(row));
  }
  return taps;
}

// Interpolation that, where it makes an image smaller, widens its filter: `radius` elements at a scale of 1.
template <typename Real>
Taps antialiased_taps(const Line& line, bool align_corners, int radius, Real (*filter)(Real x)) {
  const Real scale = Source<Real>(line, align_corners).scale();
  const Real widening = std::max(scale, Real(1));
  const Real support = static_cast<Real>(radius) * widening;
  Taps taps(line.input);
  for (int64_t i = 0; i < line.output; ++i) {
    const Real center = scale * (static_cast<Real>(i) + Real(0.5));
    const auto first = std::max(static_cast<int64_t>(center - support + Real(0.5)), int64_t{0});
    const auto end = std::min(static_cast<int64_t>(center + support + Real(0.5)), line.input);
    std::vector<Tap> row;
    Real total = 0;
    for (int64_t k = first; k < end; ++k) {
      const Real weight = filter((static_cast<Real>(k) - center + Real(0.5)) / widening);
      row.push_back({k, weight});
      total += weight;
    }
    for (Tap& tap : row) tap.weight = static_cast<Real>(tap.weight) / total;
    taps.add(std::move(row));
  }
  return taps;
}

template <typename Real>
Real triangle(Real x) {
  return std::max(Real(1) - std::abs(x), Real(0));
}

// The cubic convolution kernel with a = -0.5.
template <typename Real>
Real sharp_cubic(Real x) {
  constexpr Real a = Real(-0.5);
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : Real(0);
}

template <typename Real>
Real lanczos(Real x) {
  const auto sinc = [](Real t) {
    const Real angle = t * std::numbers::pi_v<Real>;
    return t == 0 ? Real(1) : std::sin(angle) / angle;
  };
  return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : Real(0);
}

enum class Mode {
  kNearest,
  kNearestExact,
  kLinear,
  kCubic,
  kAntialiasedLinear,
  kAntialiasedCubic,
  kAntialiasedLanczos
};

template <typename Real>
Taps make_taps(Mode mode, const Line& line, bool align_corners) {
  switch (mode) {
    case Mode::kNearest:
      return nearest_taps<Real>(line, false);
    case Mode::kNearestExact:
      return nearest_taps<Real>(line, true);
    case Mode::kLinear:
      return linear_taps<Real>(line, align_corners);
    case Mode::kCubic:
      return cubic_taps<Real>(line, align_corners);
    case Mode::kAntialiasedLinear:
      return antialiased_taps<Real>(line, align_corners, 1, triangle<Real>);
    case Mode::kAntialiasedCubic:
      return antialiased_taps<Real>(line, align_corners, 2, sharp_cubic<Real>);
    case Mode::kAntialiasedLanczos:
      return antialiased_taps<Real>(line, align_corners, 3, lanczos<Real>);
  }
  TP_CHECK(false, "unknown interpolation");
}

Taps make_backward_taps(Mode mode, const Line& line, bool align_corners, bool is_double) {
  if (mode == Mode::kNearest || mode == Mode::kNearestExact) {
    return nearest_backward_taps(line, mode == Mode::kNearestExact).transposed();
  }
  const Taps taps =
      is_double ? make_taps<double>(mode, line, align_corners) : make_taps<float>(mode, line, align_corners);
  return taps.transposed();
}

// The scales of 1, 2 or 3 spatial dimensions, outermost first.
std::vector<std::optional<double>> given_scales(LoweringContext& ctx, size_t spatial) {
  static constexpr std::string_view kNames[3][3] = {
      {"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}};
  std::vector<std::optional<double>> scales;
  for (size_t i = 0; i < spatial; ++i) {
    const std::string_view name = kNames[spatial - 1][i];
    scales.push_back(ctx.has(name) ? std::optional(ctx.real(name)) : std::nullopt);
  }
  return scales;
}

Values interpolate(LoweringContext& ctx, Mode mode) {
  const bool is_backward = ctx.has("grad_output");
  Value x = ctx.tensor(is_backward ? "grad_output" : "self");
  const DType dtype = x.dtype();
  const bool is_weighted = mode != Mode::kNearest && mode != Mode::kNearestExact;
  if (is_weighted && !is_floating(dtype)) ctx.decline("integer images");
  const Dims output = ctx.ints("output_size");
  const Dims input = is_backward ? ctx.ints("input_size") : x.dims();
  const auto scales = given_scales(ctx, output.size());
  if (is_weighted || is_backward) x = ctx.b.convert(x, wide(dtype));
  for (size_t i = 0; i < output.size(); ++i) {
    const Line line{.input = input[i + 2], .output = output[i], .scale = scales[i]};
    if (line.input < 1 || line.output < 1) ctx.decline("nothing to interpolate");
    const bool align_corners = ctx.flag("align_corners"), is_double = dtype == DType::kF64;
    const Taps taps = is_backward ? make_backward_taps(mode, line, align_corners, is_double)
                      : is_double ? make_taps<double>(mode, line, align_corners)
                                  : make_taps<float>(mode, line, align_corners);
    x = resample(ctx.b, x, static_cast<int64_t>(i) + 2, taps);
  }
  return {ctx.b.convert(x, dtype)};
}

Values lower_nearest(LoweringContext& ctx) { return interpolate(ctx, Mode::kNearest); }
Values lower_nearest_exact(LoweringContext& ctx) { return interpolate(ctx, Mode::kNearestExact); }
Values lower_linear(LoweringContext& ctx) { return interpolate(ctx, Mode::kLinear); }
Values lower_cubic(LoweringContext& ctx) { return interpolate(ctx, Mode::kCubic); }
Values lower_linear_aa(LoweringContext& ctx) { return interpolate(ctx, Mode::kAntialiasedLinear); }
Values lower_cubic_aa(LoweringContext& ctx) { return interpolate(ctx, Mode::kAntialiasedCubic); }
Values lower_lanczos_aa(LoweringContext& ctx) { return interpolate(ctx, Mode::kAntialiasedLanczos); }

OpEntry entry(std::string_view name, Lowering lower) {
  return {.name = name, .lower = lower, .static_args = {"scales", "scales_d", "scales_h", "scales_w"}};
}

}  // namespace

const OpTable& upsample_ops() {
  static const OpTable table = {
      entry("aten::upsample_nearest1d", lower_nearest),
      entry("aten::upsample_nearest2d", lower_nearest),
      entry("aten::upsample_nearest3d", lower_nearest),
      entry("aten::upsample_nearest1d_backward", lower_nearest),
      entry("aten::upsample_nearest2d_backward", lower_nearest),
      entry("aten::upsample_nearest3d_backward", lower_nearest),
      entry("aten::_upsample_nearest_exact1d", lower_nearest_exact),
      entry("aten::_upsample_nearest_exact2d", lower_nearest_exact),
      entry("aten::_upsample_nearest_exact3d", lower_nearest_exact),
      entry("aten::_upsample_nearest_exact1d_backward", lower_nearest_exact),
      entry("aten::_upsample_nearest_exact2d_backward", lower_nearest_exact),
      entry("aten::_upsample_nearest_exact3d_backward", lower_nearest_exact),
      entry("aten::upsample_linear1d", lower_linear),
      entry("aten::upsample_bilinear2d", lower_linear),
      entry("aten::upsample_trilinear3d", lower_linear),
      entry("aten::upsample_linear1d_backward", lower_linear),
      entry("aten::upsample_bilinear2d_backward", lower_linear),
      entry("aten::upsample_trilinear3d_backward", lower_linear),
      entry("aten::upsample_bicubic2d", lower_cubic),
      entry("aten::upsample_bicubic2d_backward", lower_cubic),
      entry("aten::_upsample_bilinear2d_aa", lower_linear_aa),
      entry("aten::_upsample_bilinear2d_aa_backward", lower_linear_aa),
      entry("aten::_upsample_bicubic2d_aa", lower_cubic_aa),
      entry("aten::_upsample_bicubic2d_aa_backward", lower_cubic_aa),
      entry("aten::_upsample_lanczos2d_aa", lower_lanczos_aa),
      entry("aten::_upsample_lanczos2d_aa_backward", lower_lanczos_aa),
  };
  return table;
}

}  // namespace torch_pjrt
