// Errors that depend on values. Eager PyTorch throws them at once; a recorded operator cannot. On CPU plugins a host
// call in the program looks at the values and throws what eager PyTorch throws, at the wait. Where there are no host
// calls nothing is checked: reads out of range clamp, writes out of range are dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "stablehlo/builder.h"

namespace torch_pjrt {

// What src/torch/value_check.cpp defines, for HostCall.
inline constexpr std::string_view kCheckRange = "torch_pjrt::check_range";
inline constexpr std::string_view kRequire = "torch_pjrt::require";

// The words for an index out of range: `before`, the index, `after`; or `before` alone.
struct RangeError {
  ErrorCode code;  // kIndexError or kInvalidArgument
  std::string before;
  std::optional<std::string> after;

  // "index 7 is out of bounds for dimension 1 with size 4"
  static RangeError of_dimension(ErrorCode code, int64_t dim, int64_t size, std::string_view prefix = "");
};

// Every element of `index`, of an integer dtype, is in [low, high), or is `except`.
void check_range(stablehlo::Builder& b, stablehlo::Value index, int64_t low, int64_t high, const RangeError& error,
                 std::optional<int64_t> except = std::nullopt);

// A check_range of all elements of an operand, or of one. Where they are known when the operator is called, it throws
// there.
struct OperandCheck {
  size_t operand;
  int64_t low, high;
  RangeError error;
  std::optional<int64_t> except;
  std::optional<int64_t> element = std::nullopt;  // in row-major order

  bool accepts(int64_t index) const { return (index >= low && index < high) || index == except; }
};

// Collects those that a lowering makes, on this thread, while it lives.
class OperandCheckScope {
 public:
  OperandCheckScope(stablehlo::Builder& b, const stablehlo::Values& operands);
  OperandCheckScope(const OperandCheckScope&) = delete;
  OperandCheckScope& operator=(const OperandCheckScope&) = delete;
  ~OperandCheckScope();

  std::vector<OperandCheck> checks;

  static OperandCheckScope* current();
  // `check` without its operand, which is added if `index` is all of one, or an element of it.
  void add(stablehlo::Value index, OperandCheck check);

 private:
  stablehlo::Builder& b_;
  const stablehlo::Values operands_;
};

// RuntimeError with these words unless every element of `flags`, a boolean tensor, is true.
void require(stablehlo::Builder& b, stablehlo::Value flags, std::string_view words);

// The error of c10::Scalar unless `dtype` can hold `value`, a scalar: the imaginary part and the range count, digits do
// not.
void require_convertible(stablehlo::Builder& b, stablehlo::Value value, DType dtype);

}  // namespace torch_pjrt
