#include "torch/host_batch.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>

#include "torch/host_team.h"
#include "torch/result_memory.h"

namespace torch_pjrt {
namespace {

// Multiplications. Above it, oneDNN's own threads are as fast.
constexpr int64_t kMostProducts = int64_t{1} << 27;

bool contains(const std::vector<size_t>& positions, size_t i) {
  return std::find(positions.begin(), positions.end(), i) != positions.end();
}

int64_t num_products(const BatchRule& rule, const torch::jit::Stack& arguments,
                     const std::vector<at::Tensor>& results) {
  if (!rule.weight) return 0;
  const at::Tensor& weight = arguments[*rule.weight].toTensor();
  const at::Tensor& output = *rule.weight == 1 ? results[0] : arguments[0].toTensor();
  return output.numel() * (weight.numel() / weight.size(0));
}

// Sums are added up once for each thread: they must be few beside the elements that are summed.
bool is_worth_it(const BatchRule& rule, const torch::jit::Stack& arguments, const std::vector<at::Tensor>& results,
                 int64_t num_shares) {
  const at::Tensor& batched = arguments[rule.arguments[0]].toTensor();
  // PyTorch has slow kernels for a single small image.
  const int64_t least = rule.weight ? 2 : 1;
  if (num_shares < 2 || batched.size(0) < least * num_shares) return false;
  if (num_products(rule, arguments, results) > kMostProducts) return false;
  int64_t num_summed = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].defined() && !contains(rule.returns, i)) num_summed += results[i].numel();
  }
  return num_summed * num_shares <= 2 * batched.numel();
}

torch::jit::Stack share_of(const BatchRule& rule, const torch::jit::Stack& arguments, int64_t begin, int64_t count) {
  torch::jit::Stack share = arguments;
  for (const size_t i : rule.arguments) share[i] = share[i].toTensor().narrow(0, begin, count);
  return share;
}

}  // namespace

const BatchRule* find_batch_rule(std::string_view op) {
  static const std::array rules{
      BatchRule{"aten::convolution", {0}, {0}, 1},
      BatchRule{"aten::convolution_backward", {0, 1}, {0}, 2},
      BatchRule{"aten::max_pool2d_with_indices", {0}, {0, 1}, {}},
      BatchRule{"aten::max_pool2d_with_indices_backward", {0, 1, 7}, {0}, {}},
  };
  const auto* const rule = std::find_if(rules.begin(), rules.end(), [&](const auto& rule) { return rule.op == op; });
  return rule == rules.end() ? nullptr : rule;
}

bool call_in_shares(const BatchRule& rule, const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
                    std::vector<at::Tensor>& results) {
  const int64_t num_samples = arguments[rule.arguments[0]].toTensor().size(0);
  const int64_t num_shares = at::get_num_threads();
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

}  // namespace torch_pjrt
