#include "torch/argument_checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace torch_pjrt {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

double number(const c10::IValue& value) { return value.toScalar().toDouble(); }

bool has_probability(Arguments arguments) {
  const double p = number(arguments[1]);
  return p >= 0 && p <= 1;
}

bool has_open_probability(Arguments arguments) {
  const double p = number(arguments[1]);
  return p > 0 && p < 1;
}

double largest_number(c10::ScalarType dtype) {
  if (dtype == at::kFloat) return std::numeric_limits<float>::max();
  if (dtype == at::kHalf) return std::numeric_limits<c10::Half>::max();
  if (dtype == at::kBFloat16) return std::numeric_limits<c10::BFloat16>::max();
  return std::numeric_limits<double>::max();
}

bool has_interval(Arguments arguments) {
  const double from = number(arguments[1]), to = number(arguments[2]);
  const double largest = largest_number(c10::toRealValueType(arguments[0].toTensor().scalar_type()));
  return from <= to && to - from <= largest && from >= -largest && to <= largest;
}

template <size_t index>
bool is_positive(Arguments arguments) {
  return number(arguments[index]) > 0;
}

template <size_t index>
bool is_not_negative(Arguments arguments) {
  return number(arguments[index]) >= 0;
}

bool has_powers(Arguments arguments) {
  const auto& exponents = arguments[1].toListRef();
  const auto is_bad = [](const c10::IValue& value) { return value.isInt() && value.toInt() < 0; };
  const auto tensors = arguments[0].toTensorVector();
  const auto is_integral = [](const at::Tensor& tensor) { return c10::isIntegralType(tensor.scalar_type(), true); };
  return std::none_of(exponents.begin(), exponents.end(), is_bad) ||
         std::none_of(tensors.begin(), tensors.end(), is_integral);
}

bool has_elements(Arguments arguments) { return arguments[0].toTensor().numel() > 0; }

bool are_at_least(int64_t least, const c10::IValue& list) {
  const c10::DimVector numbers = list.toDimVector();
  return std::all_of(numbers.begin(), numbers.end(), [least](int64_t number) { return number >= least; });
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups): PyTorch's shape function takes
// any of them.
bool has_window(Arguments arguments) {
  const auto num_spatial = static_cast<size_t>(std::max<int64_t>(arguments[0].toTensor().dim() - 2, 0));
  const auto is_given = [&](size_t argument, int64_t least) {
    const size_t count = arguments[argument].toListRef().size();
    return (count == 1 || count == num_spatial) && are_at_least(least, arguments[argument]);
  };
  return is_given(3, 1) && is_given(4, 0) && is_given(5, 1) && is_given(7, 0) && arguments[8].toInt() > 0;
}

// (self, kernel_size, dilation, padding, stride), also of no elements.
bool has_column_window(Arguments arguments) {
  return are_at_least(1, arguments[1]) && are_at_least(1, arguments[2]) && are_at_least(0, arguments[3]) &&
         are_at_least(1, arguments[4]);
}

template <size_t index>
bool is_not_zero(Arguments arguments) {
  return number(arguments[index]) != 0;
}

// (input, p, train): what is kept is drawn with probability 1 - p.
bool has_dropout(Arguments arguments) {
  const bool is_drawn = arguments[2].isNone() || arguments[2].toBool();
  return !is_drawn || has_probability(arguments);
}

// Sequences of numbers are neither flags nor complex.
template <size_t index>
bool has_sequence_type(Arguments arguments) {
  if (arguments[index].isNone()) return true;
  const c10::ScalarType type = arguments[index].toScalarType();
  return type != at::kBool && !c10::isComplexType(type);
}

bool is_dense(Arguments arguments) {
  const at::Tensor& self = arguments[0].toTensor();
  return self.is_contiguous(self.suggest_memory_format());
}

bool has_known_approximation(Arguments arguments) {
  const auto& name = arguments.back().toStringRef();
  return name == "none" || name == "tanh";
}

bool has_lambda(Arguments arguments) {
  const double lambda = number(arguments[1]);
  return lambda >= 0 && lambda <= largest_number(arguments[0].toTensor().scalar_type());
}

// Bins between equal ends take them from the data.
bool has_ends_of_bins(Arguments arguments) { return number(arguments[2]) <= number(arguments[3]); }

// In eager PyTorch's words at once: what the CPU's kernel says first depends on the elements of a mask. One value
// fills.
bool has_values_of_its_type(Arguments arguments) {
  const at::Tensor &self = arguments[0].toTensor(), &values = arguments[2].toTensor();
  TORCH_CHECK(self.scalar_type() == values.scalar_type() || values.numel() == 1,
              "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
              " for the destination and ", values.scalar_type(), " for the source.");
  return true;
}

bool has_sample_weights_of_its_type(Arguments arguments) {
  const at::Tensor weights = arguments[6].isTensor() ? arguments[6].toTensor() : at::Tensor();
  return !weights.defined() || weights.scalar_type() == arguments[0].toTensor().scalar_type();
}

bool has_mask_of_bools(Arguments arguments) { return arguments[1].toTensor().scalar_type() == at::kBool; }

bool has_boundaries_in_one_dimension(Arguments arguments) { return arguments[1].toTensor().dim() == 1; }

bool is_integral(const at::Tensor& tensor) { return c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false); }

// A number that a tensor is filled with is one of its dtype: real, and not too large.
bool fits(const c10::IValue& filling, c10::ScalarType dtype) {
  if (filling.toScalar().isComplex()) return c10::isComplexType(dtype);
  if (c10::isFloatingType(dtype)) {
    const double value = std::abs(number(filling));
    return !(value > largest_number(dtype)) || std::isinf(value);
  }
  if (!c10::isIntegralType(dtype, /*includeBool=*/false)) return true;
  const double value = number(filling);
  const int bits = static_cast<int>(8 * c10::elementSize(dtype)) - (dtype == at::kByte ? 0 : 1);
  const double limit = std::ldexp(1.0, bits);
  return value < limit && value >= (dtype == at::kByte ? 0 : -limit);
}

template <size_t index>
bool has_fitting_number(Arguments arguments) {
  return fits(arguments[index], arguments[0].toTensor().scalar_type());
}

// Without a dtype the number's own is meant, or the first argument's where that is a tensor.
template <size_t index, size_t dtype>
bool makes_fitting_number(Arguments arguments) {
  if (!arguments[dtype].isNone()) return fits(arguments[index], arguments[dtype].toScalarType());
  return !arguments[0].isTensor() || has_fitting_number<index>(arguments);
}

// Bounds of integers that are integers themselves; others promote.
template <size_t... bounds>
bool has_fitting_bounds(Arguments arguments) {
  const c10::ScalarType dtype = arguments[0].toTensor().scalar_type();
  const auto is_fitting = [&](const c10::IValue& bound) {
    if (bound.isNone() || !bound.toScalar().isIntegral(/*includeBool=*/false)) return true;
    return !c10::isIntegralType(dtype, /*includeBool=*/false) || fits(bound, dtype);
  };
  return (is_fitting(arguments[bounds]) && ...);
}

bool has_fitting_limits(Arguments arguments) {
  return has_fitting_number<1>(arguments) && has_fitting_number<2>(arguments);
}

// Integers are not divided by a number that is zero. What a tensor holds is looked at in the program.
bool has_divisor(Arguments arguments) {
  if (!arguments[1].isTensor()) return number(arguments[1]) != 0;
  const at::Tensor& divisor = arguments[1].toTensor();
  if (!divisor.is_cpu() || !c10::isIntegralType(divisor.scalar_type(), /*includeBool=*/true)) return true;
  return !arguments[0].isTensor() || !is_integral(arguments[0].toTensor()) || divisor.item().to<int64_t>() != 0;
}

// As many categories as float32 can number.
bool can_be_sampled(Arguments arguments) {
  constexpr int64_t kMostCategories = int64_t{1} << 24;
  const at::Tensor& self = arguments[0].toTensor();
  return arguments[1].toInt() > 0 && (self.dim() == 0 || self.size(-1) <= kMostCategories);
}

bool is_real(Arguments arguments) { return !arguments[0].toTensor().is_complex(); }

bool are_real(Arguments arguments) { return is_real(arguments) && !arguments[1].toTensor().is_complex(); }

bool is_not_bool(Arguments arguments) { return arguments[0].toTensor().scalar_type() != at::kBool; }

bool has_dim(Arguments arguments) {
  const int64_t rank = std::max<int64_t>(arguments[0].toTensor().dim(), 1);
  return arguments[1].toInt() >= -rank && arguments[1].toInt() < rank;
}

bool has_weight_of_its_type(Arguments arguments) {
  if (!arguments[2].isTensor() || !arguments[2].toTensor().defined()) return true;
  return arguments[2].toTensor().scalar_type() == arguments[0].toTensor().scalar_type();
}

// The largest of nothing is none. A dimension out of range is met elsewhere.
bool has_elements_along(Arguments arguments) {
  const at::Tensor& self = arguments[0].toTensor();
  return self.dim() == 0 || !has_dim(arguments) || self.size(arguments[1].toInt()) > 0;
}

struct NamedCheck {
  std::string_view name, overload;
  ArgumentCheck check;
};

constexpr NamedCheck kChecks[] = {
    {"aten::max", "", has_elements},
    {"aten::max", "unary_out", has_elements},
    {"aten::min", "", has_elements},
    {"aten::min", "unary_out", has_elements},
    {"aten::max", "dim", has_elements_along},
    {"aten::max", "dim_max", has_elements_along},
    {"aten::min", "dim", has_elements_along},
    {"aten::min", "dim_min", has_elements_along},
    {"aten::convolution", "", has_window},
    {"aten::convolution_overrideable", "", has_window},
    {"aten::im2col", "", has_column_window},
    {"aten::smooth_l1_loss", "", is_not_negative<3>},
    {"aten::smooth_l1_loss", "out", is_not_negative<3>},
    {"aten::huber_loss", "", is_positive<3>},
    {"aten::huber_loss", "out", is_positive<3>},
    {"aten::celu", "", is_not_zero<1>},
    {"aten::celu_", "", is_not_zero<1>},
    {"aten::native_dropout", "", has_dropout},
    {"aten::arange", "", has_sequence_type<1>},
    {"aten::arange", "start", has_sequence_type<2>},
    {"aten::arange", "start_step", has_sequence_type<3>},
    {"aten::randperm", "", has_sequence_type<1>},
    {"aten::randperm", "generator", has_sequence_type<2>},
    {"aten::fill_", "Scalar", has_fitting_number<1>},
    {"aten::full", "", makes_fitting_number<1, 2>},
    {"aten::full_like", "", makes_fitting_number<1, 2>},
    {"aten::scalar_tensor", "", makes_fitting_number<0, 1>},
    {"aten::constant_pad_nd", "", has_fitting_number<2>},
    {"aten::index_fill", "int_Scalar", has_fitting_number<3>},
    {"aten::index_fill_", "int_Scalar", has_fitting_number<3>},
    {"aten::scatter", "value", has_fitting_number<3>},
    {"aten::scatter_", "value", has_fitting_number<3>},
    {"aten::clamp", "", has_fitting_bounds<1, 2>},
    {"aten::clamp_", "", has_fitting_bounds<1, 2>},
    {"aten::clamp_min", "", has_fitting_bounds<1>},
    {"aten::clamp_min_", "", has_fitting_bounds<1>},
    {"aten::clamp_max", "", has_fitting_bounds<1>},
    {"aten::clamp_max_", "", has_fitting_bounds<1>},
    {"aten::masked_fill", "Scalar", has_fitting_number<2>},
    {"aten::masked_fill_", "Scalar", has_fitting_number<2>},
    {"aten::floor_divide", "", has_divisor},
    {"aten::floor_divide_", "Tensor", has_divisor},
    {"aten::remainder", "Tensor", has_divisor},
    {"aten::remainder", "Scalar", has_divisor},
    {"aten::remainder_", "Tensor", has_divisor},
    {"aten::remainder_", "Scalar", has_divisor},
    {"aten::fmod", "Tensor", has_divisor},
    {"aten::fmod", "Scalar", has_divisor},
    {"aten::fmod_", "Tensor", has_divisor},
    {"aten::fmod_", "Scalar", has_divisor},
    {"aten::div", "Tensor_mode", has_divisor},
    {"aten::div_", "Tensor_mode", has_divisor},
    {"aten::ceil", "", is_real},
    {"aten::ceil_", "", is_real},
    {"aten::floor", "", is_real},
    {"aten::floor_", "", is_real},
    {"aten::trunc", "", is_real},
    {"aten::trunc_", "", is_real},
    {"aten::maximum", "", are_real},
    {"aten::minimum", "", are_real},
    {"aten::fmax", "", are_real},
    {"aten::fmin", "", are_real},
    {"aten::argmax", "", is_not_bool},
    {"aten::argmin", "", is_not_bool},
    {"aten::nll_loss_forward", "", has_weight_of_its_type},
    {"aten::nll_loss2d_forward", "", has_weight_of_its_type},
    {"aten::softmax", "int", has_dim},
    {"aten::_softmax", "", has_dim},
    {"aten::cummax", "", has_dim},
    {"aten::cummax", "out", has_dim},
    {"aten::cummin", "", has_dim},
    {"aten::cummin", "out", has_dim},
    {"aten::gelu", "", has_known_approximation},
    {"aten::gelu_", "", has_known_approximation},
    {"aten::gelu_backward", "", has_known_approximation},
    {"aten::hardtanh", "", has_fitting_limits},
    {"aten::hardtanh_", "", has_fitting_limits},
    {"aten::softshrink", "", has_lambda},
    {"aten::softshrink", "out", has_lambda},
    {"aten::histc", "", has_ends_of_bins},
    {"aten::histc", "out", has_ends_of_bins},
    {"aten::renorm", "", is_not_negative<3>},
    {"aten::renorm", "out", is_not_negative<3>},
    {"aten::renorm_", "", is_not_negative<3>},
    {"aten::index_put", "", has_values_of_its_type},
    {"aten::index_put_", "", has_values_of_its_type},
    {"aten::_index_put_impl_", "", has_values_of_its_type},
    {"aten::_embedding_bag", "", has_sample_weights_of_its_type},
    {"aten::_embedding_bag_forward_only", "", has_sample_weights_of_its_type},
    {"aten::masked_scatter", "", has_mask_of_bools},
    {"aten::masked_scatter_", "", has_mask_of_bools},
    {"aten::native_group_norm", "", is_dense},
    {"aten::multinomial", "", can_be_sampled},
    {"aten::bucketize", "Tensor", has_boundaries_in_one_dimension},
    {"aten::bernoulli_", "float", has_probability},
    {"aten::bernoulli", "p", has_probability},
    {"aten::geometric_", "", has_open_probability},
    {"aten::geometric", "", has_open_probability},
    {"aten::uniform_", "", has_interval},
    {"aten::uniform", "", has_interval},
    {"aten::exponential_", "", is_positive<1>},
    {"aten::exponential", "", is_positive<1>},
    {"aten::cauchy_", "", is_positive<2>},
    {"aten::cauchy", "", is_positive<2>},
    {"aten::log_normal_", "", is_positive<2>},
    {"aten::log_normal", "", is_positive<2>},
    {"aten::normal_", "", is_not_negative<2>},
    {"aten::normal_functional", "", is_not_negative<2>},
    {"aten::normal", "Tensor_float", is_not_negative<1>},
    {"aten::normal", "float_float", is_not_negative<1>},
    {"aten::_foreach_pow_", "ScalarList", has_powers},
    {"aten::_foreach_pow", "ScalarList", has_powers},
};

}  // namespace

ArgumentCheck find_check(const std::string& name, const std::string& overload) {
  for (const NamedCheck& named : kChecks) {
    if (named.name == name && named.overload == overload) return named.check;
  }
  return nullptr;
}

bool takes_cpu_indices(const std::string& base_name) {
  static constexpr std::array<std::string_view, 5> kNames = {"aten::index", "aten::_unsafe_index", "aten::index_put",
                                                             "aten::_index_put_impl", "aten::_unsafe_index_put"};
  return std::find(kNames.begin(), kNames.end(), base_name) != kNames.end();
}

void move_cpu_indices(const OpInfo& info, torch::jit::Stack& stack, size_t num_arguments) {
  const auto& names = info.schema.argument_names;
  const auto at = static_cast<size_t>(std::find(names.begin(), names.end(), "indices") - names.begin());
  if (at >= num_arguments) return;
  c10::IValue& indices = torch::jit::peek(stack, at, num_arguments);
  const at::Device device = torch::jit::peek(stack, 0, num_arguments).toTensor().device();
  bool is_changed = false;
  std::vector<at::Tensor> moved;
  for (const auto& index : indices.toOptionalTensorVector()) {
    moved.push_back(index.value_or(at::Tensor()));
    if (!moved.back().defined() || !moved.back().is_cpu() || moved.back().dim() == 0) continue;
    moved.back() = moved.back().to(device);
    is_changed = true;
  }
  if (!is_changed) return;
  c10::List<std::optional<at::Tensor>> list;
  for (at::Tensor& index : moved) {
    if (index.defined()) {
      list.push_back(std::move(index));
    } else {
      list.push_back(std::nullopt);
    }
  }
  indices = std::move(list);
}

}  // namespace torch_pjrt
