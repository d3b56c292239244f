#include "torch/out_resizing.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/zeros.h>

#include "torch/stand_ins.h"
#include "torch/trial_call.h"

namespace torch_pjrt {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

struct Resized {
  size_t argument;
  size_t output;  // of the plan
};

// In the order of the arguments.
std::vector<Resized> find_resized(const CallPlan& plan, const OpInfo& info, Arguments arguments) {
  std::vector<Resized> resized;
  size_t output = plan.outputs.size();
  for (size_t i = arguments.size(); i-- > 0;) {
    if (!info.arguments[i].is_mutated) continue;
    output -= arguments[i].isList() ? arguments[i].toListRef().size() : 1;
    if (!info.arguments[i].is_out || !arguments[i].isTensor()) continue;
    const lazy::OutputSpec& spec = plan.signature.outputs[output];
    const at::Tensor& tensor = arguments[i].toTensor();
    if (!spec.is_defined || !tensor.defined() || tensor.sizes() == c10::IntArrayRef(spec.type.dims)) continue;
    resized.insert(resized.begin(), {i, output});
  }
  return resized;
}

Trial try_ones_and_zeros(const c10::OperatorHandle& op, const OpInfo& info, Arguments arguments) {
  constexpr size_t kMaxBytes = size_t{1} << 26;
  Trial ones = try_on_cpu(op, info, arguments, 1, kMaxBytes);
  return ones.outcome == Trial::Outcome::kRefused ? try_on_cpu(op, info, arguments, 0, kMaxBytes) : ones;
}

bool is_usual(const c10::Warning& warning) {
  return warning.msg().starts_with("An output with one or more elements was resized");
}

torch::jit::Stack with_outs(const OpInfo& info, torch::jit::Stack stack, const Dims& sizes) {
  for (size_t i = 0; i < stack.size(); ++i) {
    if (!info.arguments[i].is_out || !stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
    stack[i] = at::zeros(sizes, stack[i].toTensor().scalar_type());
  }
  return stack;
}

// Whether the CPU's kernel, which throws, takes out= tensors without elements: then their sizes are why.
bool is_about_sizes(const c10::OperatorHandle& op, const OpInfo& info, Arguments arguments) {
  torch::jit::Stack stack = with_outs(info, StandIns(info, StandIns::Kind::kCpu, 1).make(arguments), {0});
  return warnings_of(op, stack).has_value();
}

// What the operator, of arguments of two elements a dimension, warns of where no result looks like its out= tensor;
// nullopt when it throws.
std::optional<std::vector<c10::Warning>> ask_shrunk(const c10::OperatorHandle& op, const OpInfo& info,
                                                    Arguments arguments) {
  const Dims strange(12, 1);
  torch::jit::Stack stack = with_outs(info, StandIns(info, StandIns::Kind::kShrunk, 1).make(arguments), strange);
  return warnings_of(op, stack);
}

// What PyTorch warns of where the CPU's kernel cannot be asked.
std::vector<c10::Warning> usual_warnings(const CallPlan& plan, Arguments arguments,
                                         const std::vector<Resized>& resized) {
  std::vector<c10::Warning> warnings;
  for (const auto& [argument, output] : resized) {
    const auto heard = warnings_of([&, i = argument, o = output] {
      at::native::resize_output_check(arguments[i].toTensor(), plan.signature.outputs[o].type.dims);
    });
    warnings.insert(warnings.end(), heard.begin(), heard.end());
  }
  return warnings;
}

}  // namespace

void follow_cpu_resizing(CallPlan& plan, const c10::OperatorHandle& op, const OpInfo& info, Arguments arguments) {
  const std::vector<Resized> resized = find_resized(plan, info, arguments);
  if (resized.empty()) return;
  Trial trial = try_ones_and_zeros(op, info, arguments);
  if (trial.outcome != Trial::Outcome::kTaken) {
    const bool is_refused = trial.outcome == Trial::Outcome::kRefused;
    if (is_refused && is_about_sizes(op, info, arguments)) check_out_sizes(op, info, arguments);
    const auto heard = ask_shrunk(op, info, arguments);
    const bool warns = !heard || std::any_of(heard->begin(), heard->end(), is_usual);
    if (warns) plan.warnings = usual_warnings(plan, arguments, resized);
    return;
  }
  plan.warnings = std::move(trial.warnings);
  for (const auto& [argument, output] : resized) {
    const at::Tensor& example = trial.arguments[argument].toTensor();
    TP_USER_CHECK(example.sizes() == c10::IntArrayRef(plan.signature.outputs[output].type.dims), kUnimplemented,
                  "the CPU leaves out= another size");
    if (example.is_non_overlapping_and_dense() || example.numel() == 0) follow_strides(plan, output, example);
  }
}

}  // namespace torch_pjrt
