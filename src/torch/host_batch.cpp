#include "torch/host_batch.h"

#include <algorithm>
#include <array>

#include "torch/host_team.h"
#include "torch/result_memory.h"

namespace torch_pjrt {
namespace {

bool contains(const std::vector<size_t>& positions, size_t i) {
  return std::find(positions.begin(), positions.end(), i) != positions.end();
}

// Sums are added up once for each thread: they must be few beside the elements that are summed.
bool is_worth_it(const BatchRule& rule, const torch::jit::Stack& arguments, const std::vector<at::Tensor>& results,
                 int64_t num_shares) {
  const at::Tensor& batched = arguments[rule.arguments[0]].toTensor();
  // PyTorch has slow kernels for a single small image.
  const int64_t least = rule.is_convolution ? 2 : 1;
  if (num_shares < 2 || batched.size(0) < least * num_shares) return false;
  int64_t num_summed = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].defined() && !contains(rule.returns, i)) num_summed += results[i].numel();
  }
  return num_summed * num_shares <= 2 * batched.numel();
}

torch::jit::Stack share_of(const BatchRule& rule, const torch::jit::Stack& arguments, int64_t begin, int64_t count) {
  torch::jit::Stack share = arguments;
  for (const size_t i : rule.arguments) share[i] = share[i].toTensor().narrow(0, begin, count);
  if (rule.broadcast_argument && share[*rule.broadcast_argument].isTensor()) {
    const at::Tensor& tensor = share[*rule.broadcast_argument].toTensor();
    const int64_t num_samples = arguments[rule.arguments[0]].toTensor().size(0);
    if (tensor.dim() == arguments[rule.arguments[0]].toTensor().dim() && tensor.size(0) == num_samples) {
      share[*rule.broadcast_argument] = tensor.narrow(0, begin, count);
    }
  }
  return share;
}

}  // namespace

const BatchRule* find_batch_rule(std::string_view op) {
  static const std::array rules{
      BatchRule{.op = "aten::convolution", .arguments = {0}, .returns = {0}, .is_convolution = true},
      BatchRule{.op = "aten::convolution_backward", .arguments = {0, 1}, .returns = {0}, .is_convolution = true},
      BatchRule{"aten::max_pool2d_with_indices", {0}, {0, 1}},
      BatchRule{"aten::max_pool2d_with_indices_backward", {0, 1, 7}, {0}},
      BatchRule{"aten::native_layer_norm", {0}, {0, 1, 2}},
      BatchRule{"aten::native_layer_norm_backward", {0, 1, 3, 4}, {0}},
      BatchRule{.op = "aten::_scaled_dot_product_flash_attention_for_cpu",
                .arguments = {0, 1, 2},
                .returns = {0, 1},
                .broadcast_argument = 5},
      BatchRule{.op = "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                .arguments = {0, 1, 2, 3, 4, 5},
                .returns = {0, 1, 2},
                .broadcast_argument = 8},
  };
  const auto* const rule = std::find_if(rules.begin(), rules.end(), [&](const auto& rule) { return rule.op == op; });
  return rule == rules.end() ? nullptr : rule;
}

bool call_in_shares(const BatchRule& rule, const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
                    std::vector<at::Tensor>& results) {
  const int64_t num_samples = arguments[rule.arguments[0]].toTensor().size(0);
  const int64_t num_shares = num_sharing_threads();
  if (!is_worth_it(rule, arguments, results, num_shares)) return false;
  // Shares do not depend on which thread takes them, so that sums are the same in every run.
  std::vector<std::vector<at::Tensor>> sums(static_cast<size_t>(num_shares), std::vector<at::Tensor>(results.size()));
  run_shares(num_shares, [&](int64_t share) {
    const int64_t begin = num_samples * share / num_shares;
    const int64_t count = num_samples * (share + 1) / num_shares - begin;
    torch::jit::Stack stack = share_of(rule, arguments, begin, count);
    std::vector<at::Tensor> parts(results.size()), values(results.size());
    for (const size_t i : rule.returns) {
      if (results[i].defined()) parts[i] = results[i].narrow(0, begin, count);
    }
    ResultMemory memory(parts);
    op.callBoxed(&stack);
    for (size_t i = 0; i < results.size(); ++i) {
      at::Tensor& value = parts[i].defined() ? values[i] : sums[static_cast<size_t>(share)][i];
      if (results[i].defined()) value = std::move(stack[i]).toTensor();
    }
    stack.clear();
    memory.write(std::move(values));
  });
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || contains(rule.returns, i)) continue;
    for (size_t share = 1; share < sums.size(); ++share) sums[0][i].add_(sums[share][i]);
    results[i].copy_(sums[0][i]);
  }
  return true;
}

void call_lists_in_shares(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  // A few microseconds of one thread.
  constexpr int64_t kMinElementsOfShare = int64_t{1} << 14;
  const auto tensors = arguments[0].toTensorVector();
  int64_t num_elements = 0;
  for (const at::Tensor& tensor : tensors) num_elements += tensor.numel();
  const int64_t num_shares = std::clamp<int64_t>(num_elements / kMinElementsOfShare, 1, num_sharing_threads());
  run_shares(num_shares, [&](int64_t share) {
    // Small tensors are not cut: their shares would be smaller than lines of the cache.
    constexpr int64_t kMinElementsOfPart = 1024;
    const auto range = [&](int64_t size) -> std::pair<int64_t, int64_t> {
      if (size < kMinElementsOfPart * num_shares) return {0, share == 0 ? size : 0};
      return {size * share / num_shares, size * (share + 1) / num_shares};
    };
    torch::jit::Stack stack = arguments;
    for (c10::IValue& argument : stack) {
      if (!argument.isTensorList()) continue;
      c10::List<at::Tensor> parts;
      const auto list = argument.toTensorVector();
      for (size_t i = 0; i < list.size(); ++i) {
        const auto [begin, end] = range(tensors[i].numel());
        if (begin == end) continue;
        const bool is_whole = list[i].numel() != tensors[i].numel();
        parts.push_back(is_whole ? list[i] : list[i].view({-1}).narrow(0, begin, end - begin));
      }
      argument = std::move(parts);
    }
    op.callBoxed(&stack);
  });
}

}  // namespace torch_pjrt
