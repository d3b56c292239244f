#include <algorithm>
#include <array>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {
namespace {

Dims remove_dims(const Dims& dims, const Dims& removed) {
  Dims kept;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (std::find(removed.begin(), removed.end(), static_cast<int64_t>(i)) == removed.end()) kept.push_back(dims[i]);
  }
  return kept;
}

}  // namespace

std::string_view reduction_mnemonic(Reduction reduction) {
  static constexpr std::array<std::string_view, 6> kMnemonics{
      "stablehlo.add", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum", "stablehlo.and", "stablehlo.or"};
  return kMnemonics[static_cast<size_t>(reduction)];
}

std::vector<const InternedType*> Builder::Impl::check_reduction(std::string_view op, const Values& xs,
                                                                const Values& initial) {
  TP_USER_CHECK(!xs.empty() && xs.size() == initial.size(), kInvalidArgument, op,
                ": one initial value for each operand: ", initial.size(), " for ", xs.size());
  std::vector<const InternedType*> scalars;
  for (size_t i = 0; i < xs.size(); ++i) {
    TP_USER_CHECK(xs[i].dims() == xs[0].dims(), kInvalidArgument, op,
                  ": operands must have the same dims: ", xs[0].type().hlo(), " and ", xs[i].type().hlo());
    TP_USER_CHECK(initial[i].rank() == 0 && initial[i].dtype() == xs[i].dtype(), kInvalidArgument, op,
                  ": an initial value must be a scalar of the operand's dtype: ", initial[i].type().hlo(), " for ",
                  xs[i].type().hlo());
    scalars.push_back(type_of(initial[i]));
  }
  return scalars;
}

void Builder::Impl::check_yields(std::string_view op, const Values& yielded,
                                 const std::vector<const InternedType*>& types) {
  bool agrees = yielded.size() == types.size();
  for (size_t i = 0; agrees && i < types.size(); ++i) agrees = type_of(yielded[i]) == types[i];
  if (agrees) return;
  std::string got;
  for (const Value& value : yielded) got += (got.empty() ? "" : ", ") + value.type().hlo();
  std::string wanted;
  for (const InternedType* type : types) wanted += (wanted.empty() ? "" : ", ") + type->hlo();
  throw_error(ErrorCode::kInvalidArgument, op, ": the region must yield (", wanted, "): (", got, ")");
}

Values Builder::reduce(const Values& xs, const Values& initial, const Dims& dims, const Region& body) {
  static constexpr std::string_view kOp = "stablehlo.reduce";
  std::vector<const InternedType*> scalars = Impl::check_reduction(kOp, xs, initial);
  check_dims(kOp, "dimensions", dims, xs[0].rank());
  const Dims result_dims = remove_dims(xs[0].dims(), dims);
  Values results;
  for (const Value& x : xs) results.push_back(impl_->new_result(impl_->intern(x.dtype(), result_dims)));
  Values operands = xs;
  operands.insert(operands.end(), initial.begin(), initial.end());

  impl_->begin(results) << "\"stablehlo.reduce\"(" << operands << ") <{";
  impl_->i64_array("dimensions", dims) << "}> (";
  std::vector<const InternedType*> arguments = scalars;
  arguments.insert(arguments.end(), scalars.begin(), scalars.end());
  const Values yielded = impl_->region(arguments, body, Capture::kForbidden, kOp);
  Impl::check_yields(kOp, yielded, scalars);
  *impl_ << ')';
  impl_->end(operands, results);
  return results;
}

Value Builder::reduce(Reduction reduction, Value x, const Dims& dims) {
  check_dims("stablehlo.reduce", "dimensions", dims, x.rank());
  if (dims.empty()) return x;
  if (const auto stored = impl_->reduction_in_stored_order(x, dims))
    return reduce(reduction, stored->first, stored->second);
  const Value initial = identity(reduction, x.dtype());
  const Value result = impl_->new_result(impl_->intern(x.dtype(), remove_dims(x.dims(), dims)));
  impl_->begin(result) << "stablehlo.reduce(" << x << " init: " << initial << ") applies "
                       << reduction_mnemonic(reduction) << " across dimensions = [" << dims << ']';
  impl_->end({x, initial}, {result});
  return result;
}

Values Builder::sort(const Values& xs, int64_t dim, bool is_stable, const Region& comparator) {
  static constexpr std::string_view kOp = "stablehlo.sort";
  TP_USER_CHECK(!xs.empty(), kInvalidArgument, kOp, ": needs an operand");
  TP_USER_CHECK(dim >= 0 && dim < xs[0].rank(), kInvalidArgument, kOp, ": no dimension ", dim, " in ",
                xs[0].type().hlo());
  std::vector<const InternedType*> arguments;
  Values results;
  for (const Value& x : xs) {
    TP_USER_CHECK(x.dims() == xs[0].dims(), kInvalidArgument, kOp,
                  ": operands must have the same dims: ", xs[0].type().hlo(), " and ", x.type().hlo());
    const InternedType* scalar = impl_->intern(x.dtype(), {});
    arguments.insert(arguments.end(), {scalar, scalar});
    results.push_back(impl_->new_result(Impl::type_of(x)));
  }
  impl_->begin(results) << "\"stablehlo.sort\"(" << xs << ") <{dimension = " << dim
                        << " : i64, is_stable = " << is_stable << "}> (";
  const Values yielded = impl_->region(arguments, comparator, Capture::kForbidden, kOp);
  Impl::check_yields(kOp, yielded, {impl_->intern(DType::kPred, {})});
  *impl_ << ')';
  impl_->end(xs, results);
  return results;
}

std::pair<Value, Value> Builder::top_k(Value x, int64_t k) {
  TP_USER_CHECK(x.rank() >= 1 && k >= 0 && k <= x.dims().back(), kInvalidArgument,
                "chlo.top_k: k must fit the last dimension: ", k, " of ", x.type().hlo());
  TP_USER_CHECK(is_integral(x.dtype()) || is_floating(x.dtype()), kInvalidArgument,
                "chlo.top_k: unsupported element type: ", x.type().hlo());
  Dims dims = x.dims();
  dims.back() = k;
  const Value values = impl_->new_result(impl_->intern(x.dtype(), dims));
  const Value indices = impl_->new_result(impl_->intern(DType::kS32, dims));
  impl_->begin({values, indices}) << "chlo.top_k(" << x << ", k = " << k << ") : " << Impl::type_of(x) << " -> ("
                                  << Impl::type_of(values) << ", " << Impl::type_of(indices) << ')';
  impl_->end_line();
  return {values, indices};
}

}  // namespace torch_pjrt::stablehlo
