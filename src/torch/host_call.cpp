#include "torch/host_call.h"

#include <c10/util/Exception.h>

#include <charconv>
#include <cstdlib>

#include "torch/scalar_type.h"

namespace torch_pjrt {
namespace {

using Argument = HostCallPlan::Argument;
using Geometry = HostCallPlan::Geometry;
using Kind = Argument::Kind;

// Takes the text apart from its front.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool is_done() const { return rest_.empty(); }
  bool skip(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  char next() {
    TORCH_CHECK(!rest_.empty(), "host call: the text ends early");
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  // Up to the next space, or the end.
  std::string_view word() {
    const size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return word;
  }
  int64_t integer() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    TORCH_CHECK(error == std::errc(), "host call: expected a number at '", rest_, "'");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  size_t index() { return static_cast<size_t>(integer()); }
  std::vector<int64_t> integers() {
    std::vector<int64_t> values;
    if (rest_.empty() || rest_[0] == ';') return values;
    do values.push_back(integer());
    while (skip(','));
    return values;
  }
  double real() {
    const std::string copy(rest_);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    TORCH_CHECK(end != copy.c_str(), "host call: expected a number at '", rest_, "'");
    rest_.remove_prefix(static_cast<size_t>(end - copy.c_str()));
    return value;
  }
  std::vector<double> reals() {
    std::vector<double> values;
    if (rest_.empty()) return values;
    do values.push_back(real());
    while (skip(','));
    return values;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::optional<Geometry> parse_geometry(Reader& reader) {
  if (!reader.skip(':')) return std::nullopt;
  Geometry geometry;
  geometry.sizes = reader.integers();
  TORCH_CHECK(reader.skip(';'), "host call: expected strides at '", reader.rest(), "'");
  geometry.strides = reader.integers();
  TORCH_CHECK(reader.skip(';'), "host call: expected an offset at '", reader.rest(), "'");
  geometry.offset = reader.integer();
  while (reader.skip(';')) {
    HostCallPlan::Start start{};
    start.operand = reader.index();
    reader.skip('*');
    start.stride = reader.integer();
    reader.skip('<');
    start.limit = reader.integer();
    geometry.starts.push_back(start);
  }
  return geometry;
}

std::string parse_string(std::string_view digits) {
  std::string text;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    text += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return text;
}

c10::IValue parse_constant(char kind, Reader& reader) {
  switch (kind) {
    case 'n':
      return {};
    case 'i':
      return reader.integer();
    case 'f':
      return reader.real();
    case 'b':
      return reader.integer() != 0;
    case 'c': {
      const double real = reader.real();
      reader.skip(',');
      return c10::complex<double>(real, reader.real());
    }
    case 'I':
      return c10::List<int64_t>(reader.integers());
    case 'F':
      return c10::List<double>(reader.reals());
    case 'B': {
      c10::List<bool> flags;
      for (const char c : reader.rest()) flags.push_back(c == '1');
      return flags;
    }
    case 'd':
      return to_scalar_type(static_cast<DType>(reader.integer()));
    case 's':
      return parse_string(reader.rest());
    default:
      TORCH_CHECK(false, "host call: unknown kind of argument '", kind, "'");
  }
}

Argument parse_argument(std::string_view word) {
  Reader reader(word);
  Argument argument;
  const char kind = reader.next();
  if (kind == 't' || kind == 'm') {
    argument.kind = kind == 't' ? Kind::kTensor : Kind::kMutated;
    argument.operand = reader.index();
    argument.geometry = parse_geometry(reader);
  } else if (kind == 'u') {
    argument.kind = Kind::kUpdated;
    argument.operand = reader.index();
    TORCH_CHECK(reader.skip(','), "host call: expected a result at '", reader.rest(), "'");
    argument.result = reader.index();
  } else if (kind == 'x' || kind == 'w') {
    argument.kind = kind == 'x' ? Kind::kNumber : Kind::kWrappedNumber;
    argument.operand = reader.index();
  } else if (kind == 'g') {
    argument.kind = Kind::kGenerator;
    argument.operand = reader.index();
    TORCH_CHECK(reader.skip(','), "host call: expected an offset at '", reader.rest(), "'");
    argument.offset_operand = reader.index();
  } else if (kind == 'e') {
    argument.kind = Kind::kEmpty;
    argument.dtype = to_scalar_type(static_cast<DType>(reader.integer()));
  } else if (kind == 'l') {
    argument.kind = Kind::kList;
    argument.count = reader.index();
  } else if (kind == 'o') {
    argument.kind = Kind::kResult;
    argument.operand = reader.index();
  } else {
    argument.constant = parse_constant(kind, reader);
  }
  return argument;
}

c10::OperatorHandle find_operator(const std::string& name) {
  const size_t dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(), overload.c_str());
}

}  // namespace

HostCallPlan parse_host_call(std::string_view text) {
  Reader words(text);
  const std::string name(words.word());
  HostCallPlan plan;
  plan.name = name;
  plan.op = find_operator(name);
  plan.is_matmul = name == "aten::mm.out" || name == "aten::bmm.out";
  plan.batch_rule = find_batch_rule(name);
  plan.is_elementwise = name == "aten::_fused_adam_" || name == "aten::_fused_adamw_" || name == "aten::_fused_sgd_";
  plan.is_linear = name == "aten::batch_norm_update_stats" || name == "aten::native_batch_norm_backward";
  // It allocates its first result twice.
  if (name == "aten::native_batch_norm_backward") plan.num_skipped_allocations = 1;
  plan.allocates_results = plan.batch_rule != nullptr || plan.is_linear;
  for (std::string_view word = words.word(); word != "|"; word = words.word()) {
    plan.arguments.push_back(parse_argument(word));
  }
  while (!words.is_done()) {
    Reader reader(words.word());
    HostCallPlan::Result result;
    result.is_defined = reader.next() == 'r';
    result.geometry = parse_geometry(reader);
    plan.results.push_back(std::move(result));
  }
  return plan;
}

}  // namespace torch_pjrt
