#include <array>
#include <numeric>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {

Values Builder::while_loop(const Values& initial, const Region& condition, const Region& body) {
  static constexpr std::string_view kOp = "stablehlo.while";
  std::vector<const InternedType*> types;
  for (const Value& value : initial) types.push_back(Impl::type_of(value));
  const size_t start = impl_->text.size();
  Impl& out = *impl_ << "(";
  const Values continues = out.region(types, condition, Capture::kAllowed, kOp);
  Impl::check_yields(kOp, continues, {out.intern(DType::kPred, {})});
  out << ", ";
  const Values yielded = out.region(types, body, Capture::kAllowed, kOp);
  Impl::check_yields(kOp, yielded, types);
  out << ')';
  return out.close_regions(start, "\"stablehlo.while\"", initial, types);
}

Values Builder::if_else(Value pred, const Region& on_true, const Region& on_false) {
  static constexpr std::string_view kOp = "stablehlo.if";
  TP_USER_CHECK(pred.dtype() == DType::kPred && pred.rank() == 0, kInvalidArgument, kOp,
                ": pred must be a pred scalar: ", pred.type().hlo());
  const size_t start = impl_->text.size();
  Impl& out = *impl_ << "(";
  const Values yielded = out.region({}, on_true, Capture::kAllowed, kOp);
  std::vector<const InternedType*> types;
  for (const Value& value : yielded) types.push_back(Impl::type_of(value));
  out << ", ";
  Impl::check_yields(kOp, out.region({}, on_false, Capture::kAllowed, kOp), types);
  out << ')';
  return out.close_regions(start, "\"stablehlo.if\"", {pred}, types);
}

Values Builder::Impl::close_regions(size_t start, std::string_view op, const Values& operands,
                                    const std::vector<const InternedType*>& result_types) {
  Values results;
  for (const InternedType* type : result_types) results.push_back(new_result(type));
  const size_t regions_end = text.size();
  begin(results) << op << '(' << operands << ") ";
  const std::string head = text.substr(regions_end);
  text.resize(regions_end);
  text.insert(start, head);
  end(operands, results);
  return results;
}

namespace {

// True whatever the first element of `x` is: it has at most 32 bits that are set. XLA does not reason about popcnt.
Value opaque_true(Builder& b, Value x) {
  const auto rank = static_cast<size_t>(x.rank());
  x = b.reshape(b.slice(x, Dims(rank), Dims(rank, 1)), {});
  if (is_complex(x.dtype())) x = b.real(x);
  x = is_floating(x.dtype()) ? b.bitcast_convert(b.convert(x, DType::kF32), DType::kS32) : b.convert(x, DType::kS32);
  return b.compare(Comparison::kLe, b.unary("stablehlo.popcnt", x), b.constant(32, DType::kS32));
}

// XLA CPU computes a select of narrow floats in float32, which changes NaNs; of their bits it does not.
Value select_or_zero(Builder& b, Value pred, Value x) {
  if (!is_floating(x.dtype()) || size_bytes(x.dtype()) > 2) return b.select(pred, x, b.splat(0, x.type()));
  const Value bits = b.bitcast_convert(x, size_bytes(x.dtype()) == 2 ? DType::kU16 : DType::kU8);
  return b.bitcast_convert(b.select(pred, bits, b.splat(0, bits.type())), x.dtype());
}

// The same values, each of which needs the first elements of all. Where a kernel reads them the select costs nothing:
// the code generator does know the range of popcnt.
Values depend_on_all(Builder& b, Values xs) {
  Value all;
  for (const Value& x : xs) {
    if (x.numel() == 0) continue;
    const Value is_true = opaque_true(b, x);
    all = all ? b.logical_and(all, is_true) : is_true;
  }
  if (!all) return xs;
  for (Value& x : xs) x = select_or_zero(b, all, x);
  return xs;
}

}  // namespace

Values Builder::optimization_barrier(const Values& xs) {
  if (xs.empty()) return {};
  Values as_stored = xs;
  for (Value& x : as_stored) {
    if (const StoredOrder* order = impl_->find_stored(x)) x = order->value;
  }
  Values results;
  for (const Value& x : as_stored) results.push_back(impl_->new_result(Impl::type_of(x)));
  impl_->begin(results) << "stablehlo.optimization_barrier " << as_stored << " : ";
  impl_->types(as_stored);
  impl_->end_line();
  if (impl_->guards_barriers) results = depend_on_all(*this, std::move(results));
  for (size_t i = 0; i < xs.size(); ++i) results[i] = impl_->in_order_of(*this, xs[i], results[i]);
  return results;
}

std::pair<Value, Value> Builder::rng_bit_generator(Value state, RngAlgorithm algorithm, const TensorType& type) {
  static constexpr std::string_view kOp = "stablehlo.rng_bit_generator";
  static constexpr std::array<std::string_view, 3> kAlgorithms{"DEFAULT", "THREE_FRY", "PHILOX"};
  TP_USER_CHECK(state.dtype() == DType::kU64 && state.rank() == 1 &&
                    (state.dim(0) == 2 || (state.dim(0) == 3 && algorithm != RngAlgorithm::kThreeFry)),
                kInvalidArgument, kOp, ": state must be u64[2], or u64[3] for PHILOX: ", state.type().hlo());
  TP_USER_CHECK(is_integral(type.dtype), kInvalidArgument, kOp, ": the bits need an integer type: ", type.hlo());
  const Value new_state = impl_->new_result(Impl::type_of(state));
  const Value bits = impl_->new_result(impl_->intern(type));
  const Values results{new_state, bits};
  impl_->begin(results) << "stablehlo.rng_bit_generator " << state
                        << ", algorithm = " << kAlgorithms[static_cast<size_t>(algorithm)];
  impl_->end({state}, results);
  return {new_state, bits};
}

namespace {

// Row-major layouts, one for each value. Without them XLA may hand a custom call transposed buffers.
std::string layouts(const Values& values) {
  std::string text = "[";
  for (const Value& value : values) {
    if (text.size() > 1) text += ", ";
    Dims minor_to_major(static_cast<size_t>(value.rank()));
    std::iota(minor_to_major.rbegin(), minor_to_major.rend(), 0);
    text += std::string("dense<") + (minor_to_major.empty() ? std::string() : to_string(minor_to_major)) +
            "> : tensor<" + std::to_string(minor_to_major.size()) + "xindex>";
  }
  return text + "]";
}

}  // namespace

namespace {

// [#stablehlo.output_operand_alias<...>, ...]
std::string aliases_text(const std::vector<std::pair<size_t, size_t>>& aliases, const Values& results,
                         const Values& operands) {
  std::string text;
  for (const auto& [result, operand] : aliases) {
    TP_CHECK(results.at(result).type() == operands.at(operand).type(), "stablehlo.custom_call: result ", result,
             " of another type than operand ", operand, ", whose memory it takes");
    // One result is not in a tuple.
    const std::string place = results.size() == 1 ? "" : std::to_string(result);
    text += concat(text.empty() ? "[" : ", ", "#stablehlo.output_operand_alias<output_tuple_indices = [", place,
                   "], operand_index = ", operand, ", operand_tuple_indices = []>");
  }
  return text + "]";
}

}  // namespace

Values Builder::custom_call(std::string_view target, const Values& operands, const std::vector<TensorType>& results,
                            std::string_view backend_config, const CallTraits& traits) {
  const int api_version = traits.api_version;
  TP_CHECK(api_version >= 1 && api_version <= 4, "stablehlo.custom_call: api_version ", api_version);
  Values values;
  for (const TensorType& type : results) values.push_back(impl_->new_result(impl_->intern(type)));
  Impl& out = impl_->begin(values) << "stablehlo.custom_call @\"";
  append_escaped(out.text, target);
  out << "\"(" << operands << ") {api_version = " << int64_t{api_version} << " : i32, backend_config = ";
  if (api_version == 4) {
    out << '{' << backend_config << '}';
  } else {
    out << '"';
    append_escaped(out.text, backend_config);
    out << '"';
  }
  if (traits.has_side_effect) out << ", has_side_effect = true";
  if (!traits.aliases.empty()) out << ", output_operand_aliases = " << aliases_text(traits.aliases, values, operands);
  if (api_version == 4) {
    out << ", operand_layouts = " << layouts(operands) << ", result_layouts = " << layouts(values);
  }
  out << '}';
  out.end(operands, values);
  for (const Value& value : values) impl_->call_results.insert(Impl::id_of(value));
  return values;
}

}  // namespace torch_pjrt::stablehlo
