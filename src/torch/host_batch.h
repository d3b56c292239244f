// Host calls whose samples are independent: threads compute shares of the batch (host_team.h). What a share computes
// stays in the cache of its core.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string_view>
#include <vector>

namespace torch_pjrt {

// Which arguments and returns of an operator have the batch as their first dimension; its other returns are sums over
// the batch.
struct BatchRule {
  std::string_view op;
  std::vector<size_t> arguments;
  std::vector<size_t> returns;
  bool is_convolution = false;
  std::optional<size_t> broadcast_argument{};  // may also have size 1 there, or be None
};

// nullptr for an operator that is not split.
const BatchRule* find_batch_rule(std::string_view op);

// Calls `op` for shares of the batch and writes its returns to `results` (undefined: not wanted). False, and nothing
// done, where splitting is not worth it: one thread, too few samples, or sums larger than what they sum.
bool call_in_shares(const BatchRule& rule, const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
                    std::vector<at::Tensor>& results);

// Calls `op`, which computes each element of its lists of tensors by itself and returns nothing, for shares of the
// elements. All tensors are row-major; of those of one element in a list beside larger ones each share gets the whole.
void call_lists_in_shares(const c10::OperatorHandle& op, const torch::jit::Stack& arguments);

}  // namespace torch_pjrt
