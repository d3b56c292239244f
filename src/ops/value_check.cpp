#include "ops/value_check.h"

#include <numeric>

#include "ops/host_call.h"
#include "ops/host_kernel.h"

namespace torch_pjrt {

RangeError RangeError::of_dimension(ErrorCode code, int64_t dim, int64_t size, std::string_view prefix) {
  return {code, concat(prefix, "index "), concat(" is out of bounds for dimension ", dim, " with size ", size)};
}

void check_range(stablehlo::Builder& b, stablehlo::Value index, int64_t low, int64_t high, const RangeError& error) {
  if (!host_kernels_on() || index.numel() == 0) return;
  HostCall call(b, kCheckRange);
  call.tensor(index).integer(low).integer(high).attribute(error.before);
  call.attribute(error.after ? lazy::Attribute(*error.after) : lazy::Attribute());
  call.attribute(error.code == ErrorCode::kIndexError).emit();
}

void require(stablehlo::Builder& b, stablehlo::Value flags, std::string_view words) {
  if (!host_kernels_on() || flags.numel() == 0) return;
  Dims all(flags.dims().size());
  std::iota(all.begin(), all.end(), int64_t{0});
  const stablehlo::Value flag = all.empty() ? flags : b.reduce(stablehlo::Reduction::kAnd, flags, all);
  HostCall(b, kRequire).tensor(flag).attribute(std::string(words)).emit();
}

}  // namespace torch_pjrt
