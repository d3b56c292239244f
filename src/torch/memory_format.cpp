#include "torch/memory_format.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

namespace torch_pjrt {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

struct Rule {
  enum class Kind { kChannelsLast, kChannelsLastOnly, kConvolution, kLikeArgument, kRowMajor };
  std::string_view name;
  Kind kind;
  size_t num_outputs;     // the first ones follow the rule
  size_t first_argument;  // of those that are asked for their format
  size_t num_arguments;
};

constexpr Rule kRules[] = {
    {"aten::convolution", Rule::Kind::kConvolution, 1, 0, 2},
    {"aten::convolution_backward", Rule::Kind::kConvolution, 2, 1, 2},
    {"aten::convolution_overrideable", Rule::Kind::kConvolution, 1, 0, 2},
    {"aten::convolution_backward_overrideable", Rule::Kind::kConvolution, 2, 1, 2},
    // Channels last when one of the arguments is.
    {"aten::reflection_pad2d", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::reflection_pad3d", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::replication_pad2d", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::replication_pad3d", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::pixel_shuffle", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::pixel_unshuffle", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::channel_shuffle", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::native_channel_shuffle", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::max_unpool2d", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::roll", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::binary_cross_entropy", Rule::Kind::kLikeArgument, 1, 0, 1},
    {"aten::native_batch_norm", Rule::Kind::kChannelsLastOnly, 1, 0, 1},
    {"aten::_native_batch_norm_legit", Rule::Kind::kChannelsLastOnly, 1, 0, 1},
    {"aten::_native_batch_norm_legit_no_training", Rule::Kind::kChannelsLastOnly, 1, 0, 1},
    {"aten::_batch_norm_with_update", Rule::Kind::kChannelsLastOnly, 1, 0, 1},
    {"aten::native_batch_norm_backward", Rule::Kind::kChannelsLast, 1, 1, 1},
    {"aten::native_group_norm", Rule::Kind::kChannelsLast, 1, 0, 1},
    {"aten::native_group_norm_backward", Rule::Kind::kChannelsLast, 1, 1, 1},
    {"aten::native_dropout_backward", Rule::Kind::kLikeArgument, 1, 0, 1},
    {"aten::normal", Rule::Kind::kRowMajor, 1, 0, 1},
    {"aten::nll_loss2d_forward", Rule::Kind::kRowMajor, 1, 0, 1},
    {"aten::nonzero_static", Rule::Kind::kRowMajor, 1, 0, 1},
    {"aten::rrelu_with_noise", Rule::Kind::kRowMajor, 1, 0, 1},
};

Dims dense_strides(const Dims& sizes, c10::MemoryFormat format) {
  if (format == c10::MemoryFormat::ChannelsLast) return c10::get_channels_last_strides_2d(c10::IntArrayRef(sizes));
  if (format == c10::MemoryFormat::ChannelsLast3d) return c10::get_channels_last_strides_3d(c10::IntArrayRef(sizes));
  return row_major_strides(sizes);
}

// Channels last of the results' rank when an argument suggests it, else row-major.
c10::MemoryFormat suggested_format(const Rule& rule, Arguments arguments, size_t rank) {
  for (size_t i = rule.first_argument; i < rule.first_argument + rule.num_arguments; ++i) {
    const auto format = arguments[i].toTensor().suggest_memory_format();
    if (format == c10::MemoryFormat::ChannelsLast && rank == 4) return format;
    if (format == c10::MemoryFormat::ChannelsLast3d && rank == 5) return format;
  }
  return c10::MemoryFormat::Contiguous;
}

// The geometry and type of `tensor` on the CPU, without memory.
at::Tensor outline_on_cpu(const at::Tensor& tensor) {
  at::Tensor outline = at::empty({0}, at::TensorOptions(tensor.scalar_type()));
  outline.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return outline;
}

// Which of its convolutions the CPU would call decides: some write channels last, others do not, and volumes of one
// sample or of doubles go to these.
c10::MemoryFormat convolution_format(const Rule& rule, Arguments arguments) {
  const at::Tensor input = outline_on_cpu(arguments[rule.first_argument].toTensor());
  const at::Tensor weight = outline_on_cpu(arguments[rule.first_argument + 1].toTensor());
  if (input.dim() < 4) return c10::MemoryFormat::Contiguous;
  // After the weight comes a bias or its sizes, in all but one.
  const size_t stride = rule.first_argument + (rule.name == "aten::convolution_backward_overrideable" ? 2 : 3);
  const auto integers = [&](size_t i) { return arguments[stride + i].toDimVector(); };
  const auto numbers = [](const c10::DimVector& list) { return c10::fromIntArrayRefSlow(list); };
  const c10::DimVector strides = integers(0), padding = integers(1), dilation = integers(2),
                       output_padding = integers(4);
  const at::native::ConvBackend backend = at::native::select_conv_backend(
      input, weight, std::nullopt, numbers(strides), numbers(padding), numbers(dilation),
      arguments[stride + 3].toBool(), numbers(output_padding), arguments[stride + 5].toInt(), std::nullopt);
  return at::native::_determine_backend_memory_format(input, weight, backend);
}

}  // namespace

std::optional<Dims> cpu_strides(const std::string& name, Arguments arguments, size_t output, const Dims& sizes) {
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) { return r.name == name; });
  if (rule == std::end(kRules) || output >= rule->num_outputs) return std::nullopt;
  switch (rule->kind) {
    case Rule::Kind::kChannelsLast:
      return dense_strides(sizes, suggested_format(*rule, arguments, sizes.size()));
    case Rule::Kind::kChannelsLastOnly:  // and not row-major at once, as one channel is
      if (arguments[rule->first_argument].toTensor().is_contiguous()) return row_major_strides(sizes);
      return dense_strides(sizes, suggested_format(*rule, arguments, sizes.size()));
    case Rule::Kind::kConvolution:
      return dense_strides(sizes, convolution_format(*rule, arguments));
    case Rule::Kind::kLikeArgument: {
      const at::Tensor& like = arguments[rule->first_argument].toTensor();
      if (like.sizes() != c10::IntArrayRef(sizes) || !like.is_non_overlapping_and_dense()) return std::nullopt;
      return Dims(like.strides().begin(), like.strides().end());
    }
    case Rule::Kind::kRowMajor:
      return row_major_strides(sizes);
  }
  return std::nullopt;
}

bool preserves_strides(const at::Tensor& like, std::optional<at::Layout> layout,
                       std::optional<at::MemoryFormat> memory_format) {
  return like.layout() == at::kStrided && layout.value_or(at::kStrided) == at::kStrided &&
         memory_format.value_or(at::MemoryFormat::Preserve) == at::MemoryFormat::Preserve;
}

std::vector<int64_t> preserved_strides(const at::Tensor& like) {
  if (like.is_non_overlapping_and_dense()) return like.strides().vec();
  return at::infer_dense_strides(like.sizes(), like.strides());
}

std::optional<Dims> strides_in_order_of(const at::Tensor& example, const Dims& sizes) {
  if (!example.defined() || example.dim() != static_cast<int64_t>(sizes.size())) return std::nullopt;
  if (!example.is_non_overlapping_and_dense()) return std::nullopt;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (example.sizes()[i] != std::min<int64_t>(sizes[i], 2)) return std::nullopt;
  }
  std::vector<size_t> inner_first(sizes.size());
  std::iota(inner_first.rbegin(), inner_first.rend(), size_t{0});
  std::stable_sort(inner_first.begin(), inner_first.end(),
                   [&](size_t a, size_t b) { return example.strides()[a] < example.strides()[b]; });
  Dims strides(sizes.size());
  int64_t next = 1;
  for (size_t i = 0; i < inner_first.size(); ++i) {
    const size_t dim = inner_first[i];
    // Where two are equal, all but one of the dimensions have one element.
    const bool is_equal = i > 0 && example.strides()[dim] == example.strides()[inner_first[i - 1]];
    strides[dim] = is_equal ? strides[inner_first[i - 1]] : next;
    next *= std::max<int64_t>(sizes[dim], 1);
  }
  return strides;
}

}  // namespace torch_pjrt
