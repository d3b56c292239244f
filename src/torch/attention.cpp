// scaled_dot_product_attention on `xla`: PyTorch composes it of matrix products and a softmax for every device but its
// own. Where ATen's CPU kernel can run inside the program, ours asks for that, under the conditions under which eager
// PyTorch takes it on the CPU.
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <limits>

#include "exec/runtime.h"
#include "ops/host_kernel.h"
#include "torch/device.h"
#include "torch/errors.h"
#include "torch/scalar_type.h"
#include "torch/storage.h"

namespace torch_pjrt {
namespace {

bool is_plain(const at::Tensor& tensor) {
  return is_xla(tensor) && tensor.dim() == 4 && tensor.numel() > 0 && !tensor.is_conj() && !tensor.is_neg() &&
         tensor.stride(3) == 1;
}

bool same_outer_sizes(const at::Tensor& x, const at::Tensor& y) {
  return x.scalar_type() == y.scalar_type() && x.size(0) == y.size(0) && x.size(1) == y.size(1) &&
         x.size(3) == y.size(3);
}

bool takes_mask(const std::optional<at::Tensor>& mask, const at::Tensor& query, const at::Tensor& key) {
  if (!mask || !mask->defined()) return true;
  const bool is_type = mask->scalar_type() == at::kBool || mask->scalar_type() == query.scalar_type();
  if (!is_xla(*mask) || !is_type || (at::GradMode::is_enabled() && mask->requires_grad())) return false;
  if (mask->dim() != 2 && mask->dim() != 4) return false;
  const auto fits = [&](int64_t dim, int64_t size) { return mask->size(dim) == 1 || mask->size(dim) == size; };
  if (!fits(-2, query.size(2)) || !fits(-1, key.size(2))) return false;
  return mask->dim() == 2 || (fits(0, query.size(0)) && fits(1, query.size(1)));
}

bool takes_kernel(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const std::optional<at::Tensor>& mask, double dropout_p, bool is_causal) {
  if (dropout_p != 0 || (is_causal && mask && mask->defined())) return false;
  if (!at::globalContext().userEnabledFlashSDP()) return false;
  if (!is_plain(query) || !is_plain(key) || !is_plain(value)) return false;
  if (!same_outer_sizes(query, key) || !same_outer_sizes(key, value) || key.size(2) != value.size(2)) return false;
  if (!takes_mask(mask, query, key)) return false;
  with_c10_errors([] { Runtime::get(); });  // the plugin decides
  return prefers_host_attention(to_dtype(query.scalar_type()));
}

// What the kernel adds to the scores.
std::optional<at::Tensor> as_summand(const std::optional<at::Tensor>& mask, const at::Tensor& query) {
  if (!mask || !mask->defined()) return std::nullopt;
  if (mask->scalar_type() != at::kBool) return mask;
  const auto number = [&](double value) { return at::scalar_tensor(value, query.options()); };
  return at::where(*mask, number(0), number(-std::numeric_limits<double>::infinity()));
}

at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const std::optional<at::Tensor>& attn_mask, double dropout_p, bool is_causal,
                     std::optional<double> scale, bool enable_gqa) {
  if (enable_gqa || !takes_kernel(query, key, value, attn_mask, dropout_p, is_causal)) {
    return at::native::scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale,
                                                    enable_gqa);
  }
  const auto results = at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal,
                                                                       as_summand(attn_mask, query), scale);
  return std::get<0>(results);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) { m.impl("scaled_dot_product_attention", attention); }
TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { m.impl("scaled_dot_product_attention", attention); }

}  // namespace
}  // namespace torch_pjrt
