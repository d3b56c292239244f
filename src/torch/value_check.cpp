// What programs call to look at values (ops/value_check.h).
#include <ATen/core/Tensor.h>
#include <ATen/ops/aminmax.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace torch_pjrt {
namespace {

void check_range(const at::Tensor& index, int64_t low, int64_t high, std::string_view before,
                 std::optional<std::string_view> after, bool is_index_error) {
  const auto [smallest, largest] = at::aminmax(index);
  if (smallest.item<int64_t>() >= low && largest.item<int64_t>() < high) return;
  // The first one, as eager PyTorch finds it.
  const at::Tensor flat = index.to(at::kLong).contiguous();
  const int64_t* values = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (values[i] >= low && values[i] < high) continue;
    const std::string words = after ? c10::str(before, values[i], *after) : std::string(before);
    TORCH_CHECK_INDEX(!is_index_error, words);
    TORCH_CHECK(false, words);
  }
}

void require(const at::Tensor& flag, std::string_view words) { TORCH_CHECK(flag.item<bool>(), words); }

TORCH_LIBRARY(torch_pjrt, m) {
  m.def("require(Tensor flag, str words) -> ()");
  m.def("check_range(Tensor index, int low, int high, str before, str? after, bool is_index_error) -> ()");
}
TORCH_LIBRARY_IMPL(torch_pjrt, CPU, m) {
  m.impl("check_range", check_range);
  m.impl("require", require);
}

}  // namespace
}  // namespace torch_pjrt
