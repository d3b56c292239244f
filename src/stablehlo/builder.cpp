#include "stablehlo/builder.h"

#include <algorithm>

#include "stablehlo/builder_impl.h"

namespace torch_pjrt::stablehlo {

Builder::Builder() : impl_(new Impl) {}
Builder::~Builder() { delete impl_; }

Builder::Impl::Impl() {
  text.reserve(1 << 14);
  scopes.emplace_back();
}

const InternedType* Builder::Impl::intern(const TypeKey& key) {
  if (const auto it = interned.find(key); it != interned.end()) return &*it;
  // The plugin would not take such a type, and with it the whole program.
  int64_t extent = static_cast<int64_t>(size_bytes(key.dtype));
  for (const int64_t dim : key.dims) {
    TP_CHECK(dim >= 0, "a dimension of size ", dim);
    TP_CHECK(dim == 0 || !__builtin_mul_overflow(extent, dim, &extent), "too many elements to count");
  }
  TensorType type{key.dtype, key.dims};
  std::string printed = type.mlir();
  return &*interned.insert(InternedType{std::move(type), std::move(printed)}).first;
}

Builder::Impl& Builder::Impl::operator<<(Value value) {
  TP_CHECK(value.type_ != nullptr, "operand is not a value");
  const int64_t number = value.id_ >> 1;
  TP_CHECK(number >= scope().first_visible_number, "a region captures %", number,
           " from outside; bodies of reduce, sort, scatter and windows see only their arguments");
  text.append((value.id_ & 1) != 0 ? "%arg" : "%");
  return *this << number;
}

Builder::Impl& Builder::Impl::operator<<(const Dims& dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text.append(", ");
    *this << dims[i];
  }
  return *this;
}

Builder::Impl& Builder::Impl::operator<<(const Values& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text.append(", ");
    *this << values[i];
  }
  return *this;
}

Builder::Impl& Builder::Impl::types(const Values& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text.append(", ");
    *this << type_of(values[i]);
  }
  return *this;
}

Builder::Impl& Builder::Impl::i64_array(std::string_view name, const Dims& dims) {
  *this << name << " = array<i64";
  if (!dims.empty()) *this << ": " << dims;
  return *this << ">";
}

Builder::Impl& Builder::Impl::dims_field(std::string_view name, const Dims& dims) {
  if (dims.empty()) return *this;
  return *this << name << " = [" << dims << "], ";
}

Builder::Impl& Builder::Impl::begin(const Values& results) {
  indent();
  if (results.empty()) return *this;
  return *this << results << " = ";
}

void Builder::Impl::end(const Values& operands, const Values& results) {
  *this << " : (";
  types(operands) << ") -> ";
  if (results.size() == 1) {
    *this << type_of(results[0]);
  } else {
    *this << "(";
    types(results) << ")";
  }
  end_line();
}

void Builder::Impl::end(Value operand, Value result) {
  *this << " : (" << type_of(operand) << ") -> " << type_of(result);
  end_line();
}

void Builder::Impl::end(Value value) {
  *this << " : " << type_of(value);
  end_line();
}

void Builder::Impl::end_line() {
  text.append(location);
  text.push_back('\n');
}

namespace {

// Pops the scope also when the body throws, so that a declined lowering leaves the Builder consistent.
class ScopeGuard {
 public:
  ScopeGuard(std::vector<Scope>& scopes, int64_t first_visible_number) : scopes_(scopes) {
    scopes_.emplace_back().first_visible_number = first_visible_number;
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  ~ScopeGuard() { scopes_.pop_back(); }

 private:
  std::vector<Scope>& scopes_;
};

}  // namespace

Values Builder::Impl::region(const std::vector<const InternedType*>& arguments, const Region& body, Capture capture,
                             std::string_view op) {
  Values values;
  const int64_t first_visible = capture == Capture::kAllowed ? scope().first_visible_number : next_number;
  *this << "{\n";
  Values yielded;
  {
    const ScopeGuard guard(scopes, first_visible);
    for (const InternedType* type : arguments) values.push_back(new_argument(type));
    if (!values.empty()) {
      text.append(2 * scopes.size(), ' ');
      *this << "^bb0(";
      for (size_t i = 0; i < values.size(); ++i) {
        *this << (i > 0 ? ", " : "") << values[i] << ": " << arguments[i];
      }
      *this << "):\n";
    }
    yielded = body(values);
    for (const Value& value : yielded) TP_CHECK(bool(value), op, ": region yields an empty value");
    indent();
    *this << "stablehlo.return " << yielded << " : ";
    types(yielded);
    end_line();
  }
  indent();
  *this << "}";
  return yielded;
}

Value Builder::Impl::unary(std::string_view mnemonic, Value x, const InternedType* result_type) {
  const Value result = new_result(result_type);
  begin(result) << mnemonic << ' ' << x;
  const InternedType* type = type_of(x);
  if (mnemonic.starts_with("chlo.")) {
    *this << " : " << type << " -> " << result_type;
    end_line();
  } else if (type == result_type) {
    end(result);
  } else {
    end(x, result);
  }
  return result;
}

Value Builder::parameter(TensorType type, ParameterAttributes attributes) {
  const Value value = impl_->new_argument(impl_->intern(type));
  impl_->parameters.emplace_back(value, attributes);
  return value;
}

void Builder::set_attributes(size_t index, ParameterAttributes attributes) {
  TP_CHECK(index < impl_->parameters.size(), "parameter ", index, " of ", impl_->parameters.size());
  impl_->parameters[index].second = attributes;
}

void Builder::set_partitions(int64_t num_replicas, int64_t num_partitions) {
  TP_CHECK(num_replicas > 0 && num_partitions > 0, "replicas ", num_replicas, ", partitions ", num_partitions);
  impl_->num_replicas = num_replicas;
  impl_->num_partitions = num_partitions;
}

void Builder::set_location(std::string_view location) {
  impl_->location.clear();
  if (location.empty()) return;
  impl_->location = " loc(\"";
  append_escaped(impl_->location, location);
  impl_->location += "\")";
}

void Builder::guard_barriers() { impl_->guards_barriers = true; }

std::string Builder::finish(const Values& results, std::string_view module_name) {
  Impl& out = *impl_;
  TP_CHECK(!out.finished && out.scopes.size() == 1, "finish called twice or inside a region");
  out.finished = true;
  out.indent();
  out << "return";
  if (!results.empty()) {
    out << ' ' << results << " : ";
    out.types(results);
  }
  out << "\n  }\n}\n";

  std::string body;
  body.swap(out.text);
  out.text.reserve(body.size() + 256 + 64 * (out.parameters.size() + results.size()));
  out << "module @\"";
  append_escaped(out.text, module_name);
  out << "\" attributes {mhlo.num_partitions = " << out.num_partitions
      << " : i32, mhlo.num_replicas = " << out.num_replicas << " : i32} {\n  func.func public @main(";
  bool is_first = true;
  for (const auto& [value, attributes] : out.parameters) {
    if (!is_first) out << ", ";
    is_first = false;
    out << value << ": " << Impl::type_of(value);
    if (attributes.aliasing_output.has_value()) {
      out << " {tf.aliasing_output = " << *attributes.aliasing_output << " : i32}";
    } else if (attributes.buffer_donor) {
      out << " {jax.buffer_donor = true}";
    }
  }
  out << ") -> (";
  out.types(results) << ") {\n" << body;
  return std::move(out.text);
}

void append_escaped(std::string& out, std::string_view s) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (const char c : s) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      out.push_back(c);
    } else {
      out.push_back('\\');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
}

void check_dims(std::string_view op, std::string_view name, const Dims& dims, int64_t rank) {
  // Ranks beyond 64 do not occur; the bit set stays exact for those that do.
  uint64_t seen = 0;
  for (const int64_t dim : dims) {
    TP_USER_CHECK(dim >= 0 && dim < rank, kInvalidArgument, op, ": ", name, " must be in [0, ", rank,
                  "): ", to_string(dims));
    TP_USER_CHECK((seen >> (dim & 63) & 1) == 0, kInvalidArgument, op, ": ", name,
                  " must be distinct: ", to_string(dims));
    seen |= uint64_t{1} << (dim & 63);
  }
}

}  // namespace torch_pjrt::stablehlo
