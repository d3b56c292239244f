#include "torch/meta_rules.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ScalarOps.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/result_type.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace torch_pjrt {
namespace {

using torch::jit::Stack;

void require(bool is_known) {
  if (!is_known) throw NoNativeMeta();
}

at::Tensor empty(c10::IntArrayRef sizes, c10::ScalarType type) { return at::detail::empty_meta(sizes, type); }

bool is_float_or_double(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
}

bool is_index(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt;
}

bool is_defined(const c10::IValue& value) { return !value.isNone() && value.toTensor().defined(); }

// Whether an optional tensor is absent or has this type and these sizes.
bool fits(const c10::IValue& value, c10::ScalarType type, c10::IntArrayRef sizes) {
  if (!is_defined(value)) return true;
  return value.toTensor().scalar_type() == type && value.toTensor().sizes() == sizes;
}

// The first argument, which the operator writes.
void keep_self(Stack& stack) { stack.resize(1); }

// Of the sizes and the strides that an elementwise operator gives its result.
void like_self(Stack& stack) {
  const at::Tensor& self = stack[0].toTensor();
  require(self.scalar_type() != at::kBool && !self.is_complex());
  stack = {at::neg(self)};
}

// What an optional gradient is, where output_mask asks for it.
c10::IValue masked(bool is_wanted, c10::IntArrayRef sizes, c10::ScalarType type) {
  return is_wanted ? empty(sizes, type) : at::Tensor();
}

// Sizes of a convolution that is not transposed: `stride`, padding and dilation follow each other from that argument
// on.
std::vector<int64_t> convolution_sizes(const at::Tensor& input, const at::Tensor& weight, const Stack& stack,
                                       size_t stride) {
  const c10::DimVector strides = stack[stride].toDimVector(), padding = stack[stride + 1].toDimVector(),
                       dilation = stack[stride + 2].toDimVector();
  const int64_t groups = stack[stride + 5].toInt();
  require(!stack[stride + 3].toBool() && groups > 0 && input.dim() >= 3 && input.dim() == weight.dim());
  const size_t num_spatial = static_cast<size_t>(input.dim()) - 2;
  require(strides.size() == num_spatial && padding.size() == num_spatial && dilation.size() == num_spatial);
  const auto all_at_least = [](const c10::DimVector& numbers, int64_t least) {
    return std::all_of(numbers.begin(), numbers.end(), [least](int64_t number) { return number >= least; });
  };
  require(all_at_least(strides, 1) && all_at_least(padding, 0) && all_at_least(dilation, 1));
  require(input.is_floating_point() && weight.scalar_type() == input.scalar_type() && weight.numel() > 0);
  require(input.size(1) == weight.size(1) * groups && weight.size(0) % groups == 0);
  std::vector<int64_t> sizes = at::native::conv_output_size(input.sizes(), weight.sizes(), padding, strides, dilation);
  require(std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size > 0; }));
  return sizes;
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
void convolution(Stack& stack) {
  const at::Tensor &input = stack[0].toTensor(), &weight = stack[1].toTensor();
  const auto sizes = convolution_sizes(input, weight, stack, 3);
  require(fits(stack[2], input.scalar_type(), {weight.size(0)}));
  stack = {empty(sizes, input.scalar_type())};
}

// (grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask)
void convolution_backward(Stack& stack) {
  const at::Tensor &grad = stack[0].toTensor(), &input = stack[1].toTensor(), &weight = stack[2].toTensor();
  const c10::ScalarType type = input.scalar_type();
  require(grad.scalar_type() == type && grad.sizes() == convolution_sizes(input, weight, stack, 4));
  const auto mask = stack[10].toBoolList();
  stack = {masked(mask[0], input.sizes(), type), masked(mask[1], weight.sizes(), type),
           masked(mask[2], {weight.size(0)}, type)};
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps)
void native_batch_norm(Stack& stack) {
  const at::Tensor& input = stack[0].toTensor();
  const bool is_training = stack[5].toBool();
  require(input.dim() >= 2 && input.numel() > 0 && is_float_or_double(input));
  const c10::ScalarType type = input.scalar_type();
  const std::vector<int64_t> channels = {input.size(1)};
  for (size_t i = 1; i <= 4; ++i) require(fits(stack[i], type, channels));
  require(is_training || (is_defined(stack[3]) && is_defined(stack[4])));
  const auto statistics = [&] { return empty(is_training ? channels : std::vector<int64_t>{0}, type); };
  stack = {empty(input.sizes(), type), statistics(), statistics()};
}

// (grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)
void native_batch_norm_backward(Stack& stack) {
  const at::Tensor &grad = stack[0].toTensor(), &input = stack[1].toTensor();
  const c10::ScalarType type = input.scalar_type();
  require(input.dim() >= 2 && input.numel() > 0 && is_float_or_double(input) && input.is_contiguous());
  require(grad.scalar_type() == type && grad.sizes() == input.sizes() && grad.is_contiguous());
  const std::vector<int64_t> channels = {input.size(1)};
  for (size_t i = 2; i <= 4; ++i) require(fits(stack[i], type, channels));
  const auto mask = stack[9].toBoolList();
  stack = {masked(mask[0], input.sizes(), type), masked(mask[1], channels, type), masked(mask[2], channels, type)};
}

// (input, normalized_shape, weight, bias, eps)
void native_layer_norm(Stack& stack) {
  const at::Tensor& input = stack[0].toTensor();
  const c10::DimVector normalized = stack[1].toDimVector();
  const auto num_outer = input.dim() - static_cast<int64_t>(normalized.size());
  require(is_float_or_double(input) && input.is_contiguous() && !normalized.empty() && num_outer >= 0);
  require(input.sizes().slice(static_cast<size_t>(num_outer)) == normalized);
  const c10::ScalarType type = input.scalar_type();
  require(fits(stack[2], type, normalized) && fits(stack[3], type, normalized));
  c10::DimVector outer(input.sizes().begin(), input.sizes().begin() + num_outer);
  outer.resize(static_cast<size_t>(input.dim()), 1);
  stack = {empty(input.sizes(), type), empty(outer, type), empty(outer, type)};
}

// (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
void native_layer_norm_backward(Stack& stack) {
  const at::Tensor &grad = stack[0].toTensor(), &input = stack[1].toTensor();
  const c10::ScalarType type = input.scalar_type();
  const c10::DimVector normalized = stack[2].toDimVector();
  const auto mask = stack[7].toBoolList();
  require(is_float_or_double(input) && grad.scalar_type() == type && grad.sizes() == input.sizes());
  require(fits(stack[5], type, normalized) && fits(stack[6], type, normalized));
  require((is_defined(stack[5]) || !mask[1]) && (is_defined(stack[6]) || !mask[2]));
  stack = {masked(mask[0], input.sizes(), type), masked(mask[1], normalized, type), masked(mask[2], normalized, type)};
}

// (input, weight, bias, N, C, HxW, group, eps)
void native_group_norm(Stack& stack) {
  const at::Tensor& input = stack[0].toTensor();
  const c10::ScalarType type = input.scalar_type();
  const int64_t batch = stack[3].toInt(), channels = stack[4].toInt(), groups = stack[6].toInt();
  require(is_float_or_double(input) && input.numel() > 0 && input.numel() == batch * channels * stack[5].toInt());
  require(input.dim() >= 2 && groups > 0 && channels % groups == 0);
  require(fits(stack[1], type, {channels}) && fits(stack[2], type, {channels}));
  stack = {empty(input.sizes(), type), empty({batch, groups}, type), empty({batch, groups}, type)};
}

// (weight, indices, ...)
void embedding(Stack& stack) {
  const at::Tensor &weight = stack[0].toTensor(), &indices = stack[1].toTensor();
  require(weight.dim() == 2 && is_index(indices));
  c10::DimVector sizes(indices.sizes().begin(), indices.sizes().end());
  sizes.push_back(weight.size(1));
  stack = {empty(sizes, weight.scalar_type())};
}

// Dense, as the CPU's result is; meta tensors get the strides of a comparison.
void one_hot(Stack& stack) {
  const at::Tensor& self = stack[0].toTensor();
  const int64_t num_classes = stack[1].toInt();
  require(self.scalar_type() == at::kLong && num_classes > 0);
  c10::DimVector sizes(self.sizes().begin(), self.sizes().end());
  sizes.push_back(num_classes);
  stack = {empty(sizes, at::kLong)};
}

// (grad_output, indices, num_weights, ...)
void embedding_dense_backward(Stack& stack) {
  const at::Tensor &grad = stack[0].toTensor(), &indices = stack[1].toTensor();
  require(is_index(indices) && grad.dim() == indices.dim() + 1 &&
          grad.sizes().slice(0, grad.dim() - 1) == indices.sizes());
  stack = {empty({stack[2].toInt(), grad.size(-1)}, grad.scalar_type())};
}

// (self, dim, index)
void index_select(Stack& stack) {
  const at::Tensor &self = stack[0].toTensor(), &index = stack[2].toTensor();
  require(self.dim() > 0 && index.dim() == 1 && is_index(index));
  c10::DimVector sizes(self.sizes().begin(), self.sizes().end());
  sizes[static_cast<size_t>(c10::maybe_wrap_dim(stack[1].toInt(), self.dim()))] = index.numel();
  stack = {empty(sizes, self.scalar_type())};
}

// (self, mask, value)
void masked_fill_in_place(Stack& stack) {
  const at::Tensor &self = stack[0].toTensor(), &mask = stack[1].toTensor();
  require(mask.scalar_type() == at::kBool && self.is_floating_point());
  require(at::infer_size(self.sizes(), mask.sizes()) == self.sizes());
  keep_self(stack);
}

// (condition, self, other)
void where(Stack& stack) {
  const at::Tensor &condition = stack[0].toTensor(), &self = stack[1].toTensor(), &other = stack[2].toTensor();
  require(condition.scalar_type() == at::kBool && condition.is_contiguous());
  require(self.is_contiguous() && other.is_contiguous());
  const std::vector<int64_t> sizes = at::infer_size(condition.sizes(), at::infer_size(self.sizes(), other.sizes()));
  stack = {empty(sizes, at::result_type(self, other))};
}

// (grad_output, self, target, reduction)
void mse_loss_backward(Stack& stack) {
  const at::Tensor &grad = stack[0].toTensor(), &self = stack[1].toTensor(), &target = stack[2].toTensor();
  require(self.is_floating_point() && self.sizes() == target.sizes() && self.is_contiguous() && target.is_contiguous());
  require(self.scalar_type() == target.scalar_type() && self.scalar_type() == grad.scalar_type());
  require(grad.dim() == 0 || (grad.sizes() == self.sizes() && grad.is_contiguous()));
  stack = {empty(self.sizes(), self.scalar_type())};
}

// (self, output_size)
void adaptive_avg_pool2d(Stack& stack) {
  const at::Tensor& self = stack[0].toTensor();
  const c10::DimVector output = stack[1].toDimVector();
  require(is_float_or_double(self) && (self.dim() == 3 || self.dim() == 4) && self.numel() > 0 && output.size() == 2);
  require(output[0] > 0 && output[1] > 0 && self.suggest_memory_format() == at::MemoryFormat::Contiguous);
  c10::DimVector sizes(self.sizes().begin(), self.sizes().end() - 2);
  sizes.append(output.begin(), output.end());
  stack = {empty(sizes, self.scalar_type())};
}

// (self, dim, correction, keepdim) of var and std
void deviation(Stack& stack) {
  const at::Tensor& self = stack[0].toTensor();
  require(is_float_or_double(self) && self.numel() > 0);
  const at::OptionalIntArrayRef all;
  if (stack[1].isNone()) {
    stack = {at::mean(self, all, stack[3].toBool())};
  } else {
    stack = {at::mean(self, stack[1].toDimVector(), stack[3].toBool())};
  }
}

// A number that is one of the argument's elements.
void one_element(Stack& stack) {
  require(stack[0].toTensor().numel() > 0);
  stack = {empty({}, stack[0].toTensor().scalar_type())};
}

// (self, tensor)
void dot(Stack& stack) {
  const at::Tensor &self = stack[0].toTensor(), &other = stack[1].toTensor();
  require(self.dim() == 1 && self.sizes() == other.sizes() && self.scalar_type() == other.scalar_type());
  require(is_float_or_double(self));
  stack = {empty({}, self.scalar_type())};
}

// (start, end, step, dtype, ...)
void arange(Stack& stack, const c10::Scalar& start, const c10::Scalar& end, const c10::Scalar& step, size_t dtype) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  for (const c10::Scalar& number : {start, end, step}) {
    require(number.isIntegral(/*includeBool=*/false) && std::abs(number.toLong()) < kLargest);
  }
  const int64_t by = step.toLong(), distance = end.toLong() - start.toLong();
  require(by != 0 && distance != 0 && (distance > 0) == (by > 0));
  const c10::ScalarType type = stack[dtype].isNone() ? at::kLong : stack[dtype].toScalarType();
  require(type == at::kLong || type == at::kInt || type == at::kFloat || type == at::kDouble);
  stack = {empty({(distance + by + (by > 0 ? -1 : 1)) / by}, type)};
}

// (query, key, value, ...), each [batch, heads, tokens, features]
void check_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  require(query.dim() == 4 && is_float_or_double(query));
  require(key.scalar_type() == query.scalar_type() && value.scalar_type() == query.scalar_type());
  require(key.sizes() == value.sizes() && key.dim() == 4);
  require(key.size(0) == query.size(0) && key.size(1) == query.size(1) && key.size(3) == query.size(3));
}

void flash_attention(Stack& stack) {
  const at::Tensor query = stack[0].toTensor();
  check_attention(query, stack[1].toTensor(), stack[2].toTensor());
  const at::Tensor sums = empty({query.size(0), query.size(2), query.size(1)}, query.scalar_type());
  stack = {at::empty_like(query), sums.transpose(1, 2)};
}

// (grad_out, query, key, value, out, logsumexp, ...)
void flash_attention_backward(Stack& stack) {
  const at::Tensor query = stack[1].toTensor(), key = stack[2].toTensor(), value = stack[3].toTensor();
  check_attention(query, key, value);
  const auto tokens_first = [](const at::Tensor& like) {
    return empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like.scalar_type()).transpose(1, 2);
  };
  stack = {tokens_first(query), tokens_first(key), tokens_first(value)};
}

const std::unordered_map<std::string_view, MetaRule>& rules() {
  static const auto& table = *new std::unordered_map<std::string_view, MetaRule>{
      {"aten::_adaptive_avg_pool2d", adaptive_avg_pool2d},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", flash_attention},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", flash_attention_backward},
      {"aten::abs", like_self},
      {"aten::arange", [](Stack& stack) { arange(stack, 0, stack[0].toScalar(), 1, 1); }},
      {"aten::arange.start", [](Stack& stack) { arange(stack, stack[0].toScalar(), stack[1].toScalar(), 1, 2); }},
      {"aten::arange.start_step",
       [](Stack& stack) { arange(stack, stack[0].toScalar(), stack[1].toScalar(), stack[2].toScalar(), 3); }},
      {"aten::bernoulli_.float",
       [](Stack& stack) {
         require(stack[0].toTensor().is_floating_point() && stack[1].toDouble() >= 0 && stack[1].toDouble() <= 1);
         keep_self(stack);
       }},
      {"aten::convolution", convolution},
      {"aten::convolution_backward", convolution_backward},
      {"aten::dot", dot},
      {"aten::embedding", embedding},
      {"aten::embedding_dense_backward", embedding_dense_backward},
      {"aten::fill_.Scalar", keep_self},
      {"aten::floor_divide",
       [](Stack& stack) { stack = {at::div(stack[0].toTensor(), stack[1].toTensor(), "floor")}; }},
      {"aten::index_select", index_select},
      {"aten::isnan", [](Stack& stack) { stack = {at::ne(stack[0].toTensor(), stack[0].toTensor())}; }},
      {"aten::masked_fill_.Scalar", masked_fill_in_place},
      {"aten::max", one_element},
      {"aten::min", one_element},
      {"aten::mse_loss_backward", mse_loss_backward},
      {"aten::mul_.Scalar",
       [](Stack& stack) {
         const at::Tensor self = stack[0].toTensor();
         stack = {self.mul_(at::native::wrapped_scalar_tensor(stack[1].toScalar()))};
       }},
      {"aten::native_batch_norm", native_batch_norm},
      {"aten::native_batch_norm_backward", native_batch_norm_backward},
      {"aten::native_group_norm", native_group_norm},
      {"aten::native_layer_norm", native_layer_norm},
      {"aten::native_layer_norm_backward", native_layer_norm_backward},
      {"aten::normal_",
       [](Stack& stack) {
         require(stack[0].toTensor().is_floating_point() && stack[2].toDouble() >= 0);
         keep_self(stack);
       }},
      {"aten::one_hot", one_hot},
      {"aten::relu", like_self},
      {"aten::std.correction", deviation},
      {"aten::uniform_",
       [](Stack& stack) {
         require(is_float_or_double(stack[0].toTensor()) && stack[1].toDouble() <= stack[2].toDouble());
         keep_self(stack);
       }},
      {"aten::var.correction", deviation},
      {"aten::where.self", where},
      {"aten::zero_", keep_self},
  };
  return table;
}

}  // namespace

MetaRule find_meta_rule(const c10::OperatorName& name) {
  const auto rule = rules().find(toString(name));
  return rule == rules().end() ? nullptr : rule->second;
}

}  // namespace torch_pjrt
