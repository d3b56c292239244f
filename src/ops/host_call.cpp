#include "ops/host_call.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "base/error.h"

namespace torch_pjrt {

using stablehlo::StridedSource;
using stablehlo::Value;
using stablehlo::Values;

namespace {

std::string joined(const Dims& values) {
  std::string text;
  for (const int64_t value : values) {
    if (!text.empty()) text += ',';
    text += std::to_string(value);
  }
  return text;
}

std::string hexadecimal(double value) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%a", value);
  return buffer.data();
}

struct AttributeText {
  std::string operator()(std::monostate) const { return "n"; }
  std::string operator()(bool value) const { return value ? "b1" : "b0"; }
  std::string operator()(int64_t value) const { return "i" + std::to_string(value); }
  std::string operator()(double value) const { return "f" + hexadecimal(value); }
  std::string operator()(const std::complex<double>& value) const {
    return "c" + hexadecimal(value.real()) + "," + hexadecimal(value.imag());
  }
  std::string operator()(const std::string& value) const {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text = "s";
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
    return text;
  }
  std::string operator()(DType value) const { return "d" + std::to_string(static_cast<int>(value)); }
  std::string operator()(const Dims& values) const { return "I" + joined(values); }
  std::string operator()(const std::vector<double>& values) const {
    std::string text = "F";
    for (const double value : values) text += (text.size() > 1 ? "," : "") + hexadecimal(value);
    return text;
  }
  std::string operator()(const std::vector<bool>& values) const {
    std::string text = "B";
    for (const bool value : values) text += value ? '1' : '0';
    return text;
  }
};

bool has_strides(const Dims& sizes, const Dims& strides, const Dims& expected) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1 && strides[i] != expected[i]) return false;
  }
  return true;
}

Dims own_order(int64_t rank) {
  Dims order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

Dims features_last(int64_t rank) {
  Dims order(static_cast<size_t>(rank));
  std::iota(order.begin() + 1, order.end() - 1, 2);
  order.back() = 1;
  return order;
}

bool has_features_last(stablehlo::Builder& b, Value x) {
  const StridedSource source = b.source_of(x);
  return source.base != x && source.starts.empty() && lies_in_order(x.dims(), source.strides, features_last(x.rank()));
}

size_t HostCall::add_operand(Value x) {
  const auto it = std::find(operands_.begin(), operands_.end(), x);
  if (it != operands_.end()) return static_cast<size_t>(it - operands_.begin());
  operands_.push_back(x);
  return operands_.size() - 1;
}

void HostCall::add_geometry(Dims sizes, Dims strides, int64_t offset) {
  if (has_planes_) {
    // The stride by which PyTorch knows the order of the other dimensions.
    strides.insert(strides.begin() + 2, strides[2] * sizes[2]);
    sizes.insert(sizes.begin() + 2, 1);
  }
  text_ += concat(":", joined(sizes), ";", joined(strides), ";", offset);
}

HostCall& HostCall::tensor(Value x) { return add_tensor('t', x); }

HostCall& HostCall::tensor(Value x, const Dims& physical) { return add_tensor('t', x, physical); }

HostCall& HostCall::add_tensor(char kind, Value x) {
  const StridedSource source = b_.source_of(x);
  separate();
  text_ += concat(kind, add_operand(source.base));
  if (source.base == x && !has_planes_) return *this;
  add_geometry(x.dims(), source.strides, source.offset);
  for (const StridedSource::Start& start : source.starts) {
    text_ += concat(";", add_operand(start.index), "*", start.stride, "<", start.limit);
  }
  return *this;
}

HostCall& HostCall::add_tensor(char kind, Value x, const Dims& physical) {
  const StridedSource source = b_.source_of(x);
  // PyTorch tells from the strides of dimensions of size 1, too, which order its results shall have.
  const Dims strides = permuted(row_major_strides(permuted(x.dims(), physical)), inverse_permutation(physical));
  const bool lies_so = source.starts.empty() && has_strides(x.dims(), source.strides, strides);
  separate();
  text_ += concat(kind, add_operand(lies_so ? source.base : b_.transpose(x, physical)));
  add_geometry(x.dims(), strides, lies_so ? source.offset : 0);
  return *this;
}

HostCall& HostCall::strided(Value x, const Dims& strides, bool is_updated) {
  const char kind = is_updated ? 'm' : 't';
  if (has_strides(x.dims(), b_.source_of(x).strides, strides)) return add_tensor(kind, x);
  Dims physical = own_order(x.rank());
  std::stable_sort(physical.begin(), physical.end(), [&](int64_t a, int64_t b) {
    return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
  });
  return add_tensor(kind, x, lies_in_order(x.dims(), strides, physical) ? physical : own_order(x.rank()));
}

HostCall& HostCall::updated(Value x) {
  separate();
  // Its own operand: no two results can have one memory.
  operands_.push_back(x);
  aliases_.emplace_back(results_.size(), operands_.size() - 1);
  text_ += concat("u", operands_.size() - 1, ",", results_.size());
  return result(x.type());
}

HostCall& HostCall::wrapped_number(Value scalar) {
  separate();
  text_ += concat("w", add_operand(scalar));
  return *this;
}

HostCall& HostCall::empty(DType dtype) {
  separate();
  text_ += concat("e", static_cast<int>(dtype));
  return *this;
}

HostCall& HostCall::out(size_t result) {
  separate();
  text_ += concat("o", result);
  return *this;
}

HostCall& HostCall::number(Value scalar) {
  separate();
  text_ += concat("x", add_operand(scalar));
  return *this;
}

HostCall& HostCall::generator(Value seed, Value offset) {
  separate();
  text_ += concat("g", add_operand(seed), ",", add_operand(offset));
  return *this;
}

HostCall& HostCall::list(size_t count) {
  separate();
  text_ += concat("l", count);
  return *this;
}

HostCall& HostCall::attribute(const lazy::Attribute& value) {
  separate();
  text_ += std::visit(AttributeText(), value);
  return *this;
}

HostCall& HostCall::result(const TensorType& type) {
  results_.push_back({true, type, {}});
  return *this;
}

HostCall& HostCall::result(const TensorType& type, const Dims& physical) {
  if (std::is_sorted(physical.begin(), physical.end())) return result(type);
  results_.push_back({true, {type.dtype, permuted(type.dims, physical)}, inverse_permutation(physical)});
  return *this;
}

HostCall& HostCall::undefined_result() {
  results_.emplace_back();
  return *this;
}

Values HostCall::emit() {
  text_ += " |";
  std::vector<TensorType> types;
  for (const Result& result : results_) {
    text_ += result.is_defined ? " r" : " u";
    if (!result.is_defined) continue;
    types.push_back(result.stored);
    const Dims strides = row_major_strides(result.stored.dims);
    if (!result.permutation.empty()) {
      add_geometry(permuted(result.stored.dims, result.permutation), permuted(strides, result.permutation), 0);
    } else if (has_planes_) {
      add_geometry(result.stored.dims, strides, 0);
    }
  }
  // A call without results is made for what it throws.
  const Values stored = b_.custom_call(kHostCallTarget, operands_, types, concat("call = \"", text_, "\""),
                                       {.has_side_effect = types.empty(), .aliases = aliases_});
  Values values;
  size_t next = 0;
  for (const Result& result : results_) {
    if (!result.is_defined) {
      values.emplace_back();
    } else {
      const Value value = stored[next++];
      values.push_back(result.permutation.empty() ? value : b_.transpose(value, result.permutation));
    }
  }
  return values;
}

}  // namespace torch_pjrt
