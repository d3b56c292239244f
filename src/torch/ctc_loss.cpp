// ctc_loss on `xla`: PyTorch's own code brings the lengths to the host, where they become constants of the program.
// Here they are tensors, so that batches of other lengths take the same program.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <torch/library.h>

#include <limits>

namespace torch_pjrt {
namespace {

using at::Tensor;

// Raises what PyTorch raises about sizes and lengths.
void check(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
           int64_t blank) {
  const auto list = [](const Tensor& lengths) {
    const Tensor wide = lengths.to(at::kLong).contiguous();
    return std::vector<int64_t>(wide.const_data_ptr<int64_t>(), wide.const_data_ptr<int64_t>() + wide.numel());
  };
  const auto on_meta = [](const Tensor& tensor) {
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
  };
  const auto on_cpu = [](const Tensor& tensor) { return at::zeros(tensor.sizes(), tensor.scalar_type()); };
  const auto inputs = list(input_lengths), lengths = list(target_lengths);
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  try {
    at::_ctc_loss(on_meta(log_probs), on_meta(targets), inputs, lengths, blank);
  } catch (const c10::Error&) {
    at::_ctc_loss(on_cpu(log_probs), on_cpu(targets), inputs, lengths, blank);  // its words are the ones to say
    throw;
  }
}

// Targets given one after the other, [sum of lengths], as [N, longest].
Tensor padded(const Tensor& targets, const Tensor& lengths) {
  const Tensor starts = lengths.cumsum(0) - lengths;
  const int64_t longest = lengths.numel() == 0 ? 0 : lengths.max().item<int64_t>();
  if (targets.numel() == 0) return targets.new_zeros({lengths.numel(), longest});
  const Tensor index = (starts.unsqueeze(1) + at::arange(longest, lengths.options())).clamp_max(targets.numel() - 1);
  return targets.index_select(0, index.flatten().to(targets.device())).view(index.sizes());
}

Tensor reduce(const Tensor& losses, const Tensor& target_lengths, int64_t reduction, bool zero_infinity) {
  const Tensor result = zero_infinity ? at::where(losses == std::numeric_limits<double>::infinity(),
                                                  at::zeros({}, losses.options()), losses)
                                      : losses;
  if (reduction == at::Reduction::Mean) return (result / target_lengths.to(losses.options()).clamp_min(1)).mean();
  return reduction == at::Reduction::Sum ? result.sum() : result;
}

Tensor ctc_loss_of_tensors(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  TORCH_CHECK(at::isIntegralType(input_lengths.scalar_type(), false), "input_lengths must be integral");
  TORCH_CHECK(at::isIntegralType(target_lengths.scalar_type(), false), "target_lengths must be integral");
  const bool is_batched = log_probs.dim() == 3;
  const Tensor probs = is_batched ? log_probs : log_probs.unsqueeze(1);
  const Tensor input_list = input_lengths.reshape({-1}), target_list = target_lengths.reshape({-1});
  Tensor labels = targets.to(log_probs.device(), at::kLong);
  if (input_list.is_cpu() && target_list.is_cpu()) {
    check(probs, labels, input_list, target_list, blank);
    if (labels.dim() == 1) labels = padded(labels, target_list.to(at::kLong));
  }
  const Tensor inputs = input_list.to(log_probs.device()), lengths = target_list.to(log_probs.device());
  const Tensor losses = std::get<0>(at::_ctc_loss(probs, labels, inputs, lengths, blank, zero_infinity));
  const Tensor result = reduce(losses, lengths, reduction, zero_infinity);
  return is_batched || reduction != at::Reduction::None ? result : result.squeeze(0);
}

Tensor ctc_loss_of_lists(const Tensor& log_probs, const Tensor& targets, at::IntArrayRef input_lengths,
                         at::IntArrayRef target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  return ctc_loss_of_tensors(log_probs, targets, at::tensor(input_lengths, at::kLong),
                             at::tensor(target_lengths, at::kLong), blank, reduction, zero_infinity);
}

void register_losses(torch::Library& m) {
  m.impl("ctc_loss.Tensor", ctc_loss_of_tensors);
  m.impl("ctc_loss.IntList", ctc_loss_of_lists);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) { register_losses(m); }
TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { register_losses(m); }

}  // namespace
}  // namespace torch_pjrt
