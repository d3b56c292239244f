#include "torch/aten_call.h"

#include <torch/headeronly/core/enum_tag.h>

#include <algorithm>

#include "exec/lower.h"
#include "ops/aten_call.h"
#include "torch/call_signature.h"
#include "torch/out_resizing.h"
#include "torch/trial_call.h"

namespace torch_pjrt {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

// Operators whose tag says that values shape their results, though the lengths that do are numbers, and only two
// drivers of lstsq look at the rank.
bool is_wrongly_tagged(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  return (name.name == "aten::_ctc_loss" && name.overload_name.empty()) || name.name == "aten::linalg_lstsq";
}

bool looks_at_rank(const OpInfo& info, Arguments arguments) {
  if (info.name != "aten::linalg_lstsq") return false;
  return std::any_of(arguments.begin(), arguments.end(), [](const c10::IValue& value) {
    return value.isString() && (value.toStringRef() == "gelsd" || value.toStringRef() == "gelss");
  });
}

// Operators that take neither zeros nor ones: lengths must add up.
bool checks_values(const OpInfo& info) { return info.name == "aten::segment_reduce"; }

bool is_python(const c10::OperatorHandle& op) {
  // Kernels are registered with the file they are in.
  return op.getComputedKernelForDispatchKey(c10::DispatchKey::CPU).debug().find(".py:") != std::string::npos;
}

// The fresh results of a call on stand-ins, lists item by item.
std::vector<at::Tensor> fresh_results(const OpInfo& info, Arguments results) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < info.returns.size(); ++i) {
    if (info.returns[i].kind == ReturnRule::Kind::kFresh) {
      tensors.push_back(results[i].isNone() ? at::Tensor() : results[i].toTensor());
    } else if (info.returns[i].kind == ReturnRule::Kind::kFreshList) {
      for (const at::Tensor& tensor : results[i].toTensorVector()) tensors.push_back(tensor);
    }
  }
  return tensors;
}

// A result that only one of them has counts as equal: meta kernels do not look at output masks.
bool have_equal_sizes(const OpInfo& info, Arguments a, Arguments b) {
  const auto x = fresh_results(info, a), y = fresh_results(info, b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const at::Tensor& first, const at::Tensor& second) {
    return !first.defined() || !second.defined() || first.sizes() == second.sizes();
  });
}

// A trial that tells what the results are, if there is one. Other people's kernels are not tried: they may do more than
// compute, and run once a call.
std::optional<Trial> try_values(const c10::OperatorHandle& op, const OpInfo& info, Arguments arguments, bool has_meta) {
  using Outcome = Trial::Outcome;
  if (!info.name.starts_with("aten::") || checks_values(info)) return std::nullopt;
  Trial zeros = try_on_cpu(op, info, arguments, 0);
  if (zeros.outcome == Outcome::kTooLarge || (zeros.outcome == Outcome::kTaken && has_meta)) {
    return zeros.outcome == Outcome::kTaken ? std::optional(std::move(zeros)) : std::nullopt;
  }
  Trial ones = try_on_cpu(op, info, arguments, 1);
  // What is refused whatever the values are, eager PyTorch refuses at the call: the kernel itself is to say so.
  TP_USER_CHECK(zeros.outcome == Outcome::kTaken || ones.refusal != zeros.refusal, kUnimplemented, zeros.refusal);
  if (zeros.outcome == Outcome::kTaken && ones.outcome == Outcome::kTaken) {
    TP_USER_CHECK(have_equal_sizes(info, zeros.results, ones.results), kUnimplemented,
                  "the sizes of the results depend on values");
  }
  if (zeros.outcome == Outcome::kTaken) return zeros;
  return ones.outcome == Outcome::kTaken ? std::optional(std::move(ones)) : std::nullopt;
}

void plan_outputs(CallPlan& plan, const c10::OperatorHandle& op, const OpInfo& info, Arguments arguments) {
  TP_USER_CHECK(!looks_at_rank(info, arguments), kUnimplemented, "residuals are there for matrices of full rank");
  const MetaCall meta = call_meta(op, info, arguments);
  const auto trial = try_values(op, info, arguments, meta.has_kernel);
  TP_USER_CHECK(meta.has_kernel || trial, kUnimplemented,
                "neither a meta kernel nor a trial gives the sizes of the results");
  if (meta.has_kernel && trial) {
    TP_USER_CHECK(have_equal_sizes(info, trial->results, meta.results), kUnimplemented,
                  "the sizes of the results depend on values");
  }
  add_fresh_outputs(plan, info, trial ? trial->results : meta.results);
  add_mutated_outputs(plan, info, trial ? trial->arguments : meta.arguments);
  follow_cpu_resizing(plan, op, info, arguments);
  if (info.entry == &aten_check_entry()) {
    plan.outputs.push_back({true, c10::ScalarType::Bool, nullptr});
    plan.signature.outputs.push_back({{DType::kPred, {}}, {}, true});
  }
  TP_USER_CHECK(!plan.outputs.empty(), kUnimplemented, "there is no result");
}

}  // namespace

bool is_callable_in_program(const c10::OperatorHandle& op, const OpInfo& info) {
  if (op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::inplace_view)) return false;
  if (op.hasTag(at::Tag::nondeterministic_seeded) && !info.entry->random) return false;
  if (op.hasTag(at::Tag::dynamic_output_shape) && !is_wrongly_tagged(op)) return false;
  return info.is_recordable && op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU) && !is_python(op);
}

CallPlan make_aten_call_plan(const c10::OperatorHandle& op, const OpInfo& info, Arguments arguments, Hash128 hash) {
  CallPlan plan;
  plan.signature.schema = &info.schema;
  plan.signature.entry = info.entry;
  plan.signature.hash = hash;
  check_overlaps(op, info, arguments);
  try {
    for (size_t i = 0; i < arguments.size(); ++i) {
      plan.signature.arguments.push_back(make_argument(plan.signature, info.arguments[i], arguments[i]));
    }
    if (info.entry->random) {
      add_slot(plan.signature, lazy::ScalarKind::kInt);
      add_slot(plan.signature, lazy::ScalarKind::kInt);
    }
    plan_outputs(plan, op, info, arguments);
    try_lowering(plan.signature, /*has_outputs=*/true);
  } catch (const Error& error) {
    plan.fallback_reason = error.what();
  }
  return plan;
}

}  // namespace torch_pjrt
