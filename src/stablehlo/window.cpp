#include <algorithm>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {
namespace {

// A Window with every vector filled in.
struct FullWindow {
  Dims dims, strides, base_dilations, window_dilations;
  std::vector<std::pair<int64_t, int64_t>> padding;

  FullWindow(std::string_view op, const Window& window, size_t rank)
      : dims(filled(window.dims, rank, 1)),
        strides(filled(window.strides, rank, 1)),
        base_dilations(filled(window.base_dilations, rank, 1)),
        window_dilations(filled(window.window_dilations, rank, 1)),
        padding(window.padding.empty() ? std::vector<std::pair<int64_t, int64_t>>(rank) : window.padding) {
    bool fits = padding.size() == rank;
    for (const Dims* field : {&dims, &strides, &base_dilations, &window_dilations}) {
      fits =
          fits && field->size() == rank && std::all_of(field->begin(), field->end(), [](int64_t n) { return n > 0; });
    }
    TP_USER_CHECK(fits, kInvalidArgument, op, ": the window needs ", rank, " positive entries: dims ", to_string(dims),
                  ", strides ", to_string(strides), ", base dilations ", to_string(base_dilations),
                  ", window dilations ", to_string(window_dilations), ", ", padding.size(), " paddings");
  }

  // Number of window positions along dimension `i` of `size` elements.
  int64_t output_size(std::string_view op, size_t i, int64_t size) const {
    const int64_t dilated = size == 0 ? 0 : (size - 1) * base_dilations[i] + 1;
    const int64_t padded = padding[i].first + dilated + padding[i].second;
    TP_USER_CHECK(padded >= 0, kInvalidArgument, op, ": padding removes more than there is: (", padding[i].first, ", ",
                  padding[i].second, ") of ", size);
    const int64_t extent = (dims[i] - 1) * window_dilations[i] + 1;
    return extent > padded ? 0 : (padded - extent) / strides[i] + 1;
  }

  Dims output_dims(std::string_view op, const Dims& input) const {
    Dims sizes(input.size());
    for (size_t i = 0; i < input.size(); ++i) sizes[i] = output_size(op, i, input[i]);
    return sizes;
  }

 private:
  static Dims filled(const Dims& field, size_t rank, int64_t value) {
    return field.empty() ? Dims(rank, value) : field;
  }
};

}  // namespace

Builder::Impl& Builder::Impl::padding_field(const std::vector<std::pair<int64_t, int64_t>>& padding) {
  if (padding.empty()) return *this << "padding = dense<> : tensor<0x2xi64>";
  *this << "padding = dense<[";
  for (size_t i = 0; i < padding.size(); ++i) {
    *this << (i > 0 ? ", [" : "[") << padding[i].first << ", " << padding[i].second << ']';
  }
  return *this << "]> : tensor<" << static_cast<int64_t>(padding.size()) << "x2xi64>";
}

Values Builder::reduce_window(const Values& xs, const Values& initial, const Window& window, const Region& body) {
  static constexpr std::string_view kOp = "stablehlo.reduce_window";
  const std::vector<const InternedType*> scalars = Impl::check_reduction(kOp, xs, initial);
  const FullWindow full(kOp, window, xs[0].dims().size());
  const Dims result_dims = full.output_dims(kOp, xs[0].dims());
  Values results;
  for (const Value& x : xs) results.push_back(impl_->new_result(impl_->intern(x.dtype(), result_dims)));
  Values operands = xs;
  operands.insert(operands.end(), initial.begin(), initial.end());

  Impl& out = impl_->begin(results) << "\"stablehlo.reduce_window\"(" << operands << ") <{";
  out.i64_array("base_dilations", full.base_dilations) << ", ";
  out.padding_field(full.padding) << ", ";
  out.i64_array("window_dilations", full.window_dilations) << ", ";
  out.i64_array("window_dimensions", full.dims) << ", ";
  out.i64_array("window_strides", full.strides) << "}> (";
  std::vector<const InternedType*> arguments = scalars;
  arguments.insert(arguments.end(), scalars.begin(), scalars.end());
  const Values yielded = out.region(arguments, body, Capture::kForbidden, kOp);
  Impl::check_yields(kOp, yielded, scalars);
  out << ')';
  out.end(operands, results);
  return results;
}

Value Builder::reduce_window(Reduction reduction, Value x, const Window& window) {
  const Region body = [&](const Values& arguments) {
    return Values{binary(reduction_mnemonic(reduction), arguments[0], arguments[1])};
  };
  return reduce_window({x}, {identity(reduction, x.dtype())}, window, body)[0];
}

Value Builder::select_and_scatter(Value operand, Value source, Value initial, const Window& window,
                                  const Region& select, const Region& scatter) {
  static constexpr std::string_view kOp = "stablehlo.select_and_scatter";
  const std::vector<const InternedType*> scalars = Impl::check_reduction(kOp, {operand}, {initial});
  const FullWindow full(kOp, window, operand.dims().size());
  TP_USER_CHECK(window.base_dilations.empty() && window.window_dilations.empty(), kInvalidArgument, kOp,
                ": dilations are not supported");
  TP_USER_CHECK(source.dtype() == operand.dtype() && source.dims() == full.output_dims(kOp, operand.dims()),
                kInvalidArgument, kOp, ": one source element for each window: ", source.type().hlo(), " for ",
                to_string(full.output_dims(kOp, operand.dims())), " windows of ", operand.type().hlo());
  const Value result = impl_->new_result(Impl::type_of(operand));
  const Values operands{operand, source, initial};
  Impl& out = impl_->begin(result) << "\"stablehlo.select_and_scatter\"(" << operands << ") <{";
  out.padding_field(full.padding) << ", ";
  out.i64_array("window_dimensions", full.dims) << ", ";
  out.i64_array("window_strides", full.strides) << "}> (";
  const std::vector<const InternedType*> arguments{scalars[0], scalars[0]};
  const Values selected = out.region(arguments, select, Capture::kForbidden, kOp);
  Impl::check_yields(kOp, selected, {out.intern(DType::kPred, {})});
  out << ", ";
  const Values scattered = out.region(arguments, scatter, Capture::kForbidden, kOp);
  Impl::check_yields(kOp, scattered, scalars);
  out << ')';
  out.end(operands, {result});
  return result;
}

namespace {

void check_convolution(const Value& input, const Value& kernel, const ConvDims& dims, int64_t feature_group_count,
                       int64_t batch_group_count) {
  static constexpr std::string_view kOp = "stablehlo.convolution";
  TP_USER_CHECK(input.dtype() == kernel.dtype() && input.rank() == kernel.rank() && input.rank() >= 2, kInvalidArgument,
                kOp, ": input and kernel must have the same element type and rank: ", input.type().hlo(), " and ",
                kernel.type().hlo());
  const auto check_side = [&](std::string_view name, int64_t first, int64_t second, const Dims& spatial) {
    Dims all{first, second};
    all.insert(all.end(), spatial.begin(), spatial.end());
    TP_USER_CHECK(static_cast<int64_t>(all.size()) == input.rank(), kInvalidArgument, kOp, ": ", name,
                  " must name each dimension: ", to_string(all), " for ", input.type().hlo());
    check_dims(kOp, name, all, input.rank());
  };
  check_side("input dimensions", dims.input_batch, dims.input_feature, dims.input_spatial);
  check_side("kernel dimensions", dims.kernel_input_feature, dims.kernel_output_feature, dims.kernel_spatial);
  check_side("output dimensions", dims.output_batch, dims.output_feature, dims.output_spatial);

  const int64_t output_features = kernel.dim(dims.kernel_output_feature);
  TP_USER_CHECK(feature_group_count >= 1 && batch_group_count >= 1 &&
                    (feature_group_count == 1 || batch_group_count == 1) &&
                    input.dim(dims.input_batch) % batch_group_count == 0 && output_features % batch_group_count == 0 &&
                    output_features % feature_group_count == 0,
                kInvalidArgument, kOp, ": groups must divide batch and features: feature groups ", feature_group_count,
                ", batch groups ", batch_group_count, " for ", input.type().hlo(), " and ", kernel.type().hlo());
  TP_USER_CHECK(input.dim(dims.input_feature) == kernel.dim(dims.kernel_input_feature) * feature_group_count,
                kInvalidArgument, kOp,
                ": input features must be kernel input features times groups: ", input.dim(dims.input_feature), ", ",
                kernel.dim(dims.kernel_input_feature), ", ", feature_group_count);
}

// `[b, f, 0, 1]`: what each dimension of one side is.
std::string dimension_labels(int64_t rank, char first_label, int64_t first, char second_label, int64_t second,
                             const Dims& spatial) {
  std::vector<std::string> labels(static_cast<size_t>(rank));
  labels[static_cast<size_t>(first)] = first_label;
  labels[static_cast<size_t>(second)] = second_label;
  for (size_t i = 0; i < spatial.size(); ++i) labels[static_cast<size_t>(spatial[i])] = std::to_string(i);
  std::string text = "[";
  for (size_t i = 0; i < labels.size(); ++i) text += (i > 0 ? ", " : "") + labels[i];
  return text + "]";
}

}  // namespace

Value Builder::convolution(Value input, Value kernel, const Window& window, const ConvDims& dims,
                           int64_t feature_group_count, int64_t batch_group_count, std::optional<DType> result_dtype) {
  static constexpr std::string_view kOp = "stablehlo.convolution";
  check_convolution(input, kernel, dims, feature_group_count, batch_group_count);
  const DType dtype = result_dtype.value_or(input.dtype());
  check_accumulation_dtype(kOp, input.dtype(), dtype);
  const size_t rank = dims.input_spatial.size();
  Window sized = window;
  sized.dims.clear();
  for (const int64_t dim : dims.kernel_spatial) sized.dims.push_back(kernel.dim(dim));
  TP_USER_CHECK(window.dims.empty() || window.dims == sized.dims, kInvalidArgument, kOp,
                ": the window must have the kernel's size: ", to_string(window.dims), " and ", to_string(sized.dims));
  const FullWindow full(kOp, sized, rank);

  Dims result_dims(rank + 2);
  result_dims[static_cast<size_t>(dims.output_batch)] = input.dim(dims.input_batch) / batch_group_count;
  result_dims[static_cast<size_t>(dims.output_feature)] = kernel.dim(dims.kernel_output_feature);
  for (size_t i = 0; i < rank; ++i) {
    result_dims[static_cast<size_t>(dims.output_spatial[i])] =
        full.output_size(kOp, i, input.dim(dims.input_spatial[i]));
  }
  const Value result = impl_->new_result(impl_->intern(dtype, result_dims));
  Impl& out = impl_->begin(result) << "stablehlo.convolution(" << input << ", " << kernel << ") dim_numbers = "
                                   << dimension_labels(input.rank(), 'b', dims.input_batch, 'f', dims.input_feature,
                                                       dims.input_spatial)
                                   << 'x'
                                   << dimension_labels(input.rank(), 'i', dims.kernel_input_feature, 'o',
                                                       dims.kernel_output_feature, dims.kernel_spatial)
                                   << "->"
                                   << dimension_labels(input.rank(), 'b', dims.output_batch, 'f', dims.output_feature,
                                                       dims.output_spatial)
                                   << ", window = {";
  if (rank > 0) {
    out << "stride = [" << full.strides << "], pad = [";
    for (size_t i = 0; i < rank; ++i) {
      out << (i > 0 ? ", [" : "[") << full.padding[i].first << ", " << full.padding[i].second << ']';
    }
    out << "], lhs_dilate = [" << full.base_dilations << "], rhs_dilate = [" << full.window_dilations << ']';
  }
  out << "} {batch_group_count = " << batch_group_count << " : i64, feature_group_count = " << feature_group_count
      << " : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]}";
  out.end({input, kernel}, {result});
  return result;
}

}  // namespace torch_pjrt::stablehlo
