// The lowering table: ATen base name -> how it is lowered. The recorder, the operator status page and the tests read
// it.
#pragma once

#include <string_view>
#include <vector>

#include "ops/lowering.h"

namespace torch_pjrt {

struct OpEntry {
  // "aten::add": without overload and without the in-place underscore.
  std::string_view name;
  Lowering lower = nullptr;
  // Number arguments (Scalar, float, their lists) whose value shapes the program: they become constants and part of the
  // program's identity. Every other number is a run-time input, so that a changing value never recompiles. int, int[],
  // bool, str and dtype arguments are always static.
  std::vector<std::string_view> static_args = {};
  // Number arguments that become constants while they are their schema default (the integer 1 of alpha = 1); any other
  // value, 1.0 too, is a run-time input.
  std::vector<std::string_view> constant_defaults = {};
  // Tensor arguments that ATen's kernel updates although the schema does not say so (running_mean of
  // native_batch_norm).
  std::vector<std::string_view> mutates = {};
  // Tensor arguments whose contents are not read, only their type (self of fill_, zero_, uniform_): they become no
  // operand, and for the lowering they are not there; use ctx.output().
  std::vector<std::string_view> unread = {};
  // Takes numbers from a generator: the lowering may call ctx.seed() and ctx.offset(). Each call reserves one counter
  // for every output element; a call that needs more says how many 128-bit counters an element takes.
  bool random = false;
  int counters_per_element = 1;
  // Register our kernel over PyTorch's composite one even where that is CompositeImplicitAutograd. Only right when the
  // operator is never differentiated (an optimizer step, a mask).
  bool override_implicit = false;
};

using OpTable = std::vector<OpEntry>;

// One table for each family; each is defined in src/ops/<family>.cpp.
const OpTable& unary_ops();
const OpTable& binary_ops();
const OpTable& ternary_ops();
const OpTable& special_ops();
const OpTable& activation_ops();
const OpTable& activation_backward_ops();
const OpTable& cast_ops();
const OpTable& reduce_ops();
const OpTable& scan_ops();
const OpTable& matmul_ops();
const OpTable& conv_ops();
const OpTable& attention_ops();
const OpTable& max_pool_ops();
const OpTable& avg_pool_ops();
const OpTable& adaptive_pool_ops();
const OpTable& norm_ops();
const OpTable& softmax_ops();
const OpTable& loss_ops();
const OpTable& class_loss_ops();
const OpTable& distance_ops();
const OpTable& fft_ops();
const OpTable& linalg_ops();
const OpTable& lu_ops();
const OpTable& embedding_ops();
const OpTable& index_ops();
const OpTable& scatter_ops();
const OpTable& shape_ops();
const OpTable& upsample_ops();
const OpTable& grid_sampler_ops();
const OpTable& sort_ops();
const OpTable& factory_ops();
const OpTable& random_ops();
const OpTable& rnn_ops();
const OpTable& ctc_loss_ops();
const OpTable& fractional_pool_ops();
const OpTable& histogram_ops();
const OpTable& orthogonal_ops();
const OpTable& eigen_ops();
const OpTable& foreach_ops();
const OpTable& optimizer_ops();
const OpTable& strided_ops();     // xla::strided_read, xla::strided_write
const OpTable& structural_ops();  // xla::transpose, xla::zeros, xla::optimization_barrier, ...

// nullptr when the operator has no lowering. Thread safe.
const OpEntry* find_op(std::string_view name);
// Whether tensors of one element each are a sound example of a call. Kernels of other families, internal ones above
// all, may trust that sizes fit each other.
bool takes_any_sizes(const OpEntry& entry);
// All entries, ordered by name.
const std::vector<const OpEntry*>& all_ops();

}  // namespace torch_pjrt
