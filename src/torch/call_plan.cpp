#include "torch/call_plan.h"

#include <algorithm>
#include <stdexcept>

#include "base/env.h"
#include "exec/lower.h"
#include "torch/call_signature.h"
#include "torch/memory_format.h"
#include "torch/out_resizing.h"
#include "torch/overlap.h"
#include "torch/scalar_type.h"
#include "torch/statistics.h"
#include "torch/trial_call.h"

namespace torch_pjrt {

using Kind = ArgumentRule::Kind;

namespace {

// Dense strides. Those of no elements say nothing, but they are numbers that a program can ask for, too.
void set_strides(CallPlan::Output& output, lazy::OutputSpec& spec, Dims strides) {
  const bool has_layout = spec.type.numel() > 0 && !is_row_major(spec.type.dims, strides);
  output.is_contiguous = strides == row_major_strides(spec.type.dims);
  output.layout = has_layout ? lazy::intern_layout(spec.type.dims, strides) : nullptr;
  spec.strides = std::move(strides);
}

}  // namespace

void follow_strides(CallPlan& plan, size_t i, const at::Tensor& example) {
  lazy::OutputSpec& spec = plan.signature.outputs[i];
  const bool has_gaps = example.numel() > 0 && !example.is_non_overlapping_and_dense();
  set_strides(plan.outputs[i], spec,
              has_gaps ? row_major_strides(spec.type.dims) : Dims(example.strides().begin(), example.strides().end()));
}

void add_output(CallPlan& plan, const at::Tensor& tensor) {
  CallPlan::Output output;
  lazy::OutputSpec spec;
  spec.is_defined = tensor.defined();
  if (tensor.defined()) {
    TP_USER_CHECK(tensor.layout() == c10::Layout::Strided, kUnimplemented, "a result is not strided");
    output.scalar_type = tensor.scalar_type();
    spec.type = {to_dtype(tensor.scalar_type()), {tensor.sizes().begin(), tensor.sizes().end()}};
  }
  plan.outputs.push_back(output);
  plan.signature.outputs.push_back(std::move(spec));
  if (tensor.defined()) follow_strides(plan, plan.outputs.size() - 1, tensor);
}

void add_mutated_outputs(CallPlan& plan, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!info.arguments[i].is_mutated) continue;
    const c10::IValue& value = arguments[i];
    if (info.arguments[i].kind == Kind::kTensorList) {
      for (const at::Tensor& tensor : value.toTensorVector()) add_output(plan, tensor);
    } else {
      add_output(plan, value.isNone() ? at::Tensor() : value.toTensor());
    }
  }
}

void add_fresh_outputs(CallPlan& plan, const OpInfo& info, c10::ArrayRef<c10::IValue> results) {
  for (size_t i = 0; i < info.returns.size(); ++i) {
    if (info.returns[i].kind == ReturnRule::Kind::kFresh) {
      add_output(plan, results[i].isNone() ? at::Tensor() : results[i].toTensor());
    } else if (info.returns[i].kind == ReturnRule::Kind::kFreshList) {
      const auto tensors = results[i].toTensorVector();
      for (const at::Tensor& tensor : tensors) add_output(plan, tensor);
      plan.list_sizes.push_back(tensors.size());
    }
  }
}

namespace {

// No meta kernel: the lowering's own types, row-major.
void infer_outputs_by_lowering(CallPlan& plan, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  const auto trial = try_lowering(plan.signature, /*has_outputs=*/false).outputs;
  size_t next = 0;
  for (const ReturnRule& rule : info.returns) {
    TP_USER_CHECK(rule.kind != ReturnRule::Kind::kFreshList, kUnimplemented, info.name,
                  ": returns a list and PyTorch has no meta kernel for it");
    if (rule.kind != ReturnRule::Kind::kFresh) continue;
    const TrialOutput& output = trial.at(next++);
    CallPlan::Output planned;
    planned.scalar_type = to_scalar_type(output.type.dtype);
    plan.outputs.push_back(planned);
    plan.signature.outputs.push_back({output.type, row_major_strides(output.type.dims), output.is_defined});
  }
  add_mutated_outputs(plan, info, arguments);
}

void confirm_by_lowering(CallPlan& plan) {
  auto [outputs, checks] = try_lowering(plan.signature, /*has_outputs=*/true);
  for (size_t i = 0; i < outputs.size(); ++i) {
    lazy::OutputSpec& spec = plan.signature.outputs[i];
    spec.is_defined = spec.is_defined && outputs[i].is_defined;
  }
  plan.checks = std::move(checks);
}

// Those of PyTorch's meta kernel are other ones than the CPU's.
bool has_wrong_meta_sizes(const OpInfo& info) { return info.name == "aten::multilabel_margin_loss_forward"; }

bool has_empty_result(const CallPlan& plan) {
  return std::any_of(plan.signature.outputs.begin(), plan.signature.outputs.end(),
                     [](const lazy::OutputSpec& spec) { return spec.is_defined && spec.type.numel() == 0; });
}

// Of the fresh results, as long as they are tensors.
std::vector<c10::ScalarType> result_types(const CallPlan& plan, const OpInfo& info) {
  std::vector<c10::ScalarType> types;
  for (size_t i = 0; i < info.returns.size() && info.returns[i].kind == ReturnRule::Kind::kFresh; ++i) {
    if (!plan.signature.outputs[i].is_defined) break;
    types.push_back(plan.outputs[i].scalar_type);
  }
  return types;
}

size_t result_bytes(const CallPlan& plan) {
  size_t bytes = 0;
  for (const lazy::OutputSpec& spec : plan.signature.outputs) bytes += spec.is_defined ? spec.type.size_bytes() : 0;
  return bytes;
}

// Fresh results without elements have strides, too, which the CPU's kernel tells at no cost.
void follow_cpu_strides_of_empty(CallPlan& plan, const c10::OperatorHandle& op, const OpInfo& info,
                                 c10::ArrayRef<c10::IValue> arguments) {
  if (!has_empty_result(plan)) return;
  Trial trial;
  try {
    trial = try_on_cpu(op, info, arguments, 0);
  } catch (const c10::NotImplementedError&) {
    return;  // cpu_lacks_kernel says whether that is an error
  }
  if (trial.outcome != Trial::Outcome::kTaken) return;
  for (size_t i = 0; i < info.returns.size() && info.returns[i].kind == ReturnRule::Kind::kFresh; ++i) {
    const lazy::OutputSpec& spec = plan.signature.outputs[i];
    const at::Tensor example = trial.results[i].isTensor() ? trial.results[i].toTensor() : at::Tensor();
    const bool is_same = spec.is_defined && example.defined() && example.sizes() == c10::IntArrayRef(spec.type.dims);
    if (is_same && example.numel() == 0) follow_strides(plan, i, example);
  }
}

// Fresh results get the strides of the CPU's kernel.
void follow_cpu_strides(CallPlan& plan, const c10::OperatorHandle& op, const OpInfo& info,
                        c10::ArrayRef<c10::IValue> arguments) {
  const bool are_plain = std::all_of(arguments.begin(), arguments.end(), [](const c10::IValue& value) {
    return !value.isTensor() || !value.toTensor().defined() ||
           has_row_major_strides(*value.toTensor().unsafeGetTensorImpl());
  });
  std::vector<at::Tensor> shrunk;
  if (!are_plain && !info.first_mutated) shrunk = on_shrunk(op, info, arguments);
  for (size_t i = 0; i < info.returns.size() && info.returns[i].kind == ReturnRule::Kind::kFresh; ++i) {
    lazy::OutputSpec& spec = plan.signature.outputs[i];
    if (!spec.is_defined || spec.type.numel() == 0) continue;
    auto strides = cpu_strides(info.name, arguments, i, spec.type.dims);
    if (!strides && i < shrunk.size()) strides = strides_in_order_of(shrunk[i], spec.type.dims);
    if (strides) set_strides(plan.outputs[i], spec, std::move(*strides));
  }
}

void plan_outputs(CallPlan& plan, const c10::OperatorHandle& op, const OpInfo& info,
                  c10::ArrayRef<c10::IValue> arguments) {
  const MetaCall meta = call_meta(op, info, arguments);
  if (meta.has_kernel && !has_wrong_meta_sizes(info)) {
    check_inplace_sizes(op, info, arguments, meta.arguments);
    add_fresh_outputs(plan, info, meta.results);
    add_mutated_outputs(plan, info, meta.arguments);
  } else {
    infer_outputs_by_lowering(plan, info, arguments);
  }
  follow_cpu_strides(plan, op, info, arguments);
  follow_cpu_strides_of_empty(plan, op, info, arguments);
  follow_cpu_resizing(plan, op, info, arguments);
}

}  // namespace

CallPlan make_plan(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                   Hash128 hash, int device) {
  // A lowering that is wrong must not be met at the cut: the call runs on the CPU instead, and is counted. Developers
  // ask for the error.
  static const bool is_strict = env_flag("TORCH_PJRT_STRICT", false);
  CallPlan plan;
  plan.signature.schema = &info.schema;
  plan.signature.entry = info.entry;
  plan.signature.hash = hash;
  if (!info.is_recordable) {
    plan.fallback_reason = "returns something other than tensors";
    return plan;
  }
  check_overlaps(op, info, arguments);
  check_out_types(op, info, arguments);
  if (writes_shared_elements(info, arguments)) {
    plan.fallback_reason = "it writes elements that lie in one place";
    return plan;
  }
  try {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (info.arguments[i].is_out) break;  // out= arguments come last and are outputs only
      plan.signature.arguments.push_back(make_argument(plan.signature, info.arguments[i], arguments[i]));
    }
    if (info.entry->random) {
      add_slot(plan.signature, lazy::ScalarKind::kInt);
      add_slot(plan.signature, lazy::ScalarKind::kInt);
    }
    plan_outputs(plan, op, info, arguments);
    plan.fallback_reason = objection_of_cpu(op, info, arguments, result_types(plan, info), result_bytes(plan));
    if (plan.fallback_reason) return plan;
    confirm_by_lowering(plan);
    if (cpu_lacks_kernel(op, info, arguments)) plan.fallback_reason = "the CPU has no kernel for these dtypes";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal && is_strict) throw;
    if (error.code() == ErrorCode::kInternal) count("LoweringError::" + info.name);
    plan.fallback_reason = error.what();
  } catch (const std::out_of_range& error) {
    if (is_strict) throw;
    count("LoweringError::" + info.name);
    plan.fallback_reason = error.what();
  }
  return plan;
}

}  // namespace torch_pjrt
