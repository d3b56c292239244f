// Errors that depend on values. Eager PyTorch throws them at once; a recorded operator cannot. On CPU plugins a host
// call in the program looks at the values and throws what eager PyTorch throws, at the wait. Where there are no host
// calls nothing is checked: reads out of range clamp, writes out of range are dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

// Every element of `index`, of an integer dtype, is in [low, high).
void check_range(stablehlo::Builder& b, stablehlo::Value index, int64_t low, int64_t high, const RangeError& error);

// RuntimeError with these words unless every element of `flags`, a boolean tensor, is true.
void require(stablehlo::Builder& b, stablehlo::Value flags, std::string_view words);

}  // namespace torch_pjrt
