#include "torch/trial_call.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "torch/map_tensors.h"
#include "torch/native_meta.h"
#include "torch/overlap.h"
#include "torch/stand_ins.h"

namespace torch_pjrt {
namespace {

// What the arguments' storages hold.
size_t total_bytes(c10::ArrayRef<c10::IValue> arguments) {
  size_t bytes = 0;
  for_each_tensor(arguments,
                  [&](const at::Tensor& tensor) { bytes += tensor.defined() ? tensor.storage().nbytes() : 0; });
  return bytes;
}

// What a stand-in's call warns of is kept for the call itself.
class Listener : public c10::WarningHandler {
 public:
  std::vector<c10::Warning> heard;

  void process(const c10::Warning& warning) override { heard.push_back(warning); }
};

// What a kernel threw.
struct Refusal {
  std::exception_ptr error;
  std::string words;
  bool is_not_implemented = false;
  bool is_pytorchs = true;

  bool says(std::string_view part) const { return words.find(part) != std::string::npos; }
};

// Calls the kernel of the backend itself, not those of autograd and autocast before it, on stand-ins.
std::optional<Refusal> call_unheard(const c10::OperatorHandle& op, torch::jit::Stack& stack, Listener& listener) {
  const c10::WarningUtils::WarningHandlerGuard silence(&listener);
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                                 c10::autocast_dispatch_keyset);
  try {
    op.callBoxed(&stack);
    return std::nullopt;
  } catch (const c10::NotImplementedError& error) {
    return Refusal{std::current_exception(), error.what_without_backtrace(), true, true};
  } catch (const c10::Error& error) {
    return Refusal{std::current_exception(), error.what_without_backtrace(), false, true};
  } catch (const std::exception& error) {
    return Refusal{std::current_exception(), error.what(), false, false};
  }
}

std::optional<Refusal> call_unheard(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  Listener unheard;
  return call_unheard(op, stack, unheard);
}

// Leaves the CPU's default generator as it was.
class KeptGenerator {
 public:
  KeptGenerator() : generator_(at::detail::getDefaultCPUGenerator()), state_(generator_.get_state()) {}
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;
  ~KeptGenerator() { generator_.set_state(state_); }

 private:
  at::Generator generator_;
  at::Tensor state_;
};

std::unique_ptr<KeptGenerator> keep_generator(const OpInfo& info) {
  return info.entry->random ? std::make_unique<KeptGenerator>() : nullptr;
}

// The words of the CPU's kernels about an out= tensor of a type that they do not write.
bool is_about_types(std::string_view words) {
  constexpr std::string_view kWords[] = {"type",    "output",  "for result",          "tensor out",
                                         "complex", "canCast", "not implemented for", "must match the size"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return words.find(word) != std::string_view::npos; });
}

// An out= tensor that is an input as well is not resized.
bool is_read_too(c10::ArrayRef<c10::IValue> arguments, const at::Tensor& out) {
  return std::count_if(arguments.begin(), arguments.end(),
                       [&](const c10::IValue& value) { return value.isTensor() && value.toTensor().is_same(out); }) > 1;
}

// Kernels of floating-point results refuse to write them to integers in place.
bool writes_integers(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  if (!info.first_mutated || !takes_any_sizes(*info.entry)) return false;
  const c10::IValue& written = arguments[*info.first_mutated];
  return written.isTensor() && written.toTensor().defined() &&
         c10::isIntegralType(written.toTensor().scalar_type(), /*includeBool=*/true);
}

bool takes_generator(const OpInfo& info) {
  return std::any_of(info.arguments.begin(), info.arguments.end(),
                     [](const ArgumentRule& rule) { return rule.kind == ArgumentRule::Kind::kGenerator; });
}

// Errors that come of the shrunk sizes mean nothing.
bool refuses_dtypes(const c10::OperatorHandle& op, torch::jit::Stack stack) {
  const auto refusal = call_unheard(op, stack);
  if (!refusal || !refusal->is_pytorchs) return false;
  if (refusal->is_not_implemented) return refusal->says("not implemented for '");
  // Where kernels demand that two arguments have the same type.
  if (refusal->says("of scalar type")) std::rethrow_exception(refusal->error);
  return false;
}

// Advanced indexing with a mask: what zeros in its place select says nothing about sizes.
bool selects_by_mask(c10::ArrayRef<c10::IValue> arguments) {
  const auto is_mask = [](const c10::IValue& item) {
    if (!item.isTensor() || !item.toTensor().defined()) return false;
    return item.toTensor().scalar_type() == at::kBool || item.toTensor().scalar_type() == at::kByte;
  };
  return std::any_of(arguments.begin(), arguments.end(), [&](const c10::IValue& value) {
    if (!value.isOptionalTensorList()) return false;
    const auto indices = value.toListRef();
    return std::any_of(indices.begin(), indices.end(), is_mask);
  });
}

// Whether the CPU's kernel would read memory that is not the arguments': pivots of zero, statistics of another number
// of channels, or none where they are wanted.
bool would_crash(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  constexpr std::string_view kTakePivots[] = {"aten::linalg_lu_solve", "aten::lu_unpack", "aten::linalg_ldl_solve"};
  if (std::find(std::begin(kTakePivots), std::end(kTakePivots), info.name) != std::end(kTakePivots)) return true;
  if (info.name.find("batch_norm") == std::string::npos || !arguments[0].isTensor()) return false;
  const at::Tensor& input = arguments[0].toTensor();
  const int64_t channels = input.dim() > 1 ? input.size(1) : 0;
  bool has_statistics = false, wants_statistics = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& name = info.schema.argument_names[i];
    if (arguments[i].isBool() && name.starts_with("train")) wants_statistics = !arguments[i].toBool();
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined()) continue;
    const at::Tensor& tensor = arguments[i].toTensor();
    if (tensor.dim() <= 1 && tensor.numel() != channels) return true;
    has_statistics = has_statistics || name == "running_mean";
  }
  return wants_statistics && !has_statistics;
}

// Operators that take neither zeros nor ones: lengths must add up.
bool looks_at_lengths(const OpInfo& info) {
  return info.name == "aten::segment_reduce" || info.name == "aten::repeat_interleave";
}

// One floating-point dtype, perhaps beside indices and masks: what programs call again and again.
bool has_usual_dtypes(c10::ArrayRef<c10::IValue> arguments) {
  std::optional<c10::ScalarType> found;
  bool is_usual = true;
  for_each_tensor(arguments, [&](const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kBool) return;
    is_usual = is_usual && tensor.is_floating_point() && found.value_or(tensor.scalar_type()) == tensor.scalar_type();
    found = tensor.scalar_type();
  });
  return is_usual && found;
}

bool has_out(const OpInfo& info) {
  return std::any_of(info.arguments.begin(), info.arguments.end(),
                     [](const ArgumentRule& rule) { return rule.is_out; });
}

MetaCall call_meta_on(StandIns::Kind kind, const c10::OperatorHandle& op, const OpInfo& info,
                      c10::ArrayRef<c10::IValue> arguments) {
  MetaCall call;
  const auto make_arguments = [&] {
    call.arguments = StandIns(info, kind).make(arguments);
    call.results = call.arguments;
  };
  make_arguments();
  NativeMeta native;
  {
    Listener unheard;
    const c10::WarningUtils::WarningHandlerGuard silence(&unheard);
    native = run_native_meta(op, call.results);
  }
  call.has_kernel = native == NativeMeta::kTaken;
  if (call.has_kernel) return call;
  // The one in Python may check less.
  if (native == NativeMeta::kRefused) cpu_accepts(op, info, arguments);
  make_arguments();
  const auto refusal = call_unheard(op, call.results);
  // Many meta kernels are written in Python, with words of their own.
  const bool is_final = refusal && !refusal->is_not_implemented && !selects_by_mask(arguments);
  if (is_final && !cpu_accepts(op, info, arguments)) {
    std::rethrow_exception(refusal->error);
  }
  call.has_kernel = !refusal;
  return call;
}

bool resizes_out(const OpInfo& info, c10::ArrayRef<c10::IValue> before, c10::ArrayRef<c10::IValue> after) {
  for (size_t i = 0; i < before.size(); ++i) {
    if (!info.arguments[i].is_out || !before[i].isTensor()) continue;
    const at::Tensor& tensor = before[i].toTensor();
    if (tensor.defined() && tensor.sizes() != after[i].toTensor().sizes()) return true;
  }
  return false;
}

}  // namespace

MetaCall call_meta(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  // Those written in Python warn of out= tensors that they resize, in words of their own, but not of empty ones.
  if (has_out(info)) {
    MetaCall call = call_meta_on(StandIns::Kind::kMetaOutsEmpty, op, info, arguments);
    if (call.has_kernel && resizes_out(info, arguments, call.arguments)) return call;
  }
  return call_meta_on(StandIns::Kind::kMeta, op, info, arguments);
}

void check_out_sizes(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  call_meta_on(StandIns::Kind::kMeta, op, info, arguments);
}

std::vector<c10::Warning> warnings_of(const std::function<void()>& function) {
  Listener listener;
  const c10::WarningUtils::WarningHandlerGuard silence(&listener);
  function();
  return std::move(listener.heard);
}

std::optional<std::vector<c10::Warning>> warnings_of(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  Listener listener;
  if (call_unheard(op, stack, listener)) return std::nullopt;
  return std::move(listener.heard);
}

bool cpu_accepts(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  constexpr size_t kMaxBytes = size_t{1} << 30;  // what an error message may cost
  if (total_bytes(arguments) > kMaxBytes) return false;
  torch::jit::Stack stack = StandIns(info, StandIns::Kind::kCpu).make(arguments);
  const auto refusal = call_unheard(op, stack);
  // The dispatcher's words for an operator without a kernel; a kernel's own are about the dtype.
  if (refusal && !(refusal->is_not_implemented && refusal->says("Could not run"))) {
    std::rethrow_exception(refusal->error);
  }
  return !refusal;
}

Trial try_on_cpu(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments, int value,
                 size_t max_bytes) {
  Trial trial;
  if (total_bytes(arguments) > max_bytes) return trial;
  const auto kept = keep_generator(info);
  trial.arguments = StandIns(info, StandIns::Kind::kCpu, value).make(arguments);
  trial.results = trial.arguments;
  Listener listener;
  const auto refusal = call_unheard(op, trial.results, listener);
  trial.warnings = std::move(listener.heard);
  if (refusal && refusal->is_not_implemented) std::rethrow_exception(refusal->error);
  trial.outcome = refusal ? Trial::Outcome::kRefused : Trial::Outcome::kTaken;
  if (refusal) trial.refusal = refusal->words;
  return trial;
}

void check_overlaps(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  if (!may_overlap(info, arguments)) return;
  if (info.entry == nullptr ? takes_generator(info) : info.entry->random) {
    // Asking the CPU's kernel would draw from its generator.
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (info.arguments[i].is_mutated) at::assert_no_internal_overlap(arguments[i].toTensor());
    }
    return;
  }
  try {
    cpu_accepts(op, info, arguments);
  } catch (const c10::Error& error) {
    // What else it says is about the zeros that it was asked with.
    if (std::string_view(error.what()).find("single memory location") != std::string_view::npos) throw;
  }
}

void check_out_types(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  if (!has_out(info) && !writes_integers(info, arguments)) return;
  constexpr size_t kMaxBytes = size_t{1} << 26;
  const auto kept = keep_generator(info);
  const bool shrinks = takes_any_sizes(*info.entry);
  if (!shrinks && total_bytes(arguments) > kMaxBytes) return;
  torch::jit::Stack stack =
      StandIns(info, shrinks ? StandIns::Kind::kOneElement : StandIns::Kind::kCpu).make(arguments);
  const auto refusal = call_unheard(op, stack);
  // What else it says is about the values or the sizes that it was asked with.
  if (!refusal || !refusal->is_pytorchs || !is_about_types(refusal->words)) return;
  // With the sizes of the call, another error may come first.
  if (!cpu_accepts(op, info, arguments)) std::rethrow_exception(refusal->error);
}

void check_inplace_sizes(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
                         c10::ArrayRef<c10::IValue> meta_arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!info.arguments[i].is_mutated || !arguments[i].isTensor()) continue;
    const at::Tensor& tensor = arguments[i].toTensor();
    if (info.arguments[i].is_out && !is_read_too(arguments, tensor)) continue;
    const at::Tensor& after = meta_arguments[i].toTensor();
    if (!tensor.defined() || tensor.sizes() == after.sizes()) continue;
    if (cpu_accepts(op, info, arguments)) continue;
    TORCH_CHECK(false, "output with shape ", tensor.sizes(), " doesn't match the broadcast shape ", after.sizes());
  }
}

std::vector<at::Tensor> on_shrunk(const c10::OperatorHandle& op, const OpInfo& info,
                                  c10::ArrayRef<c10::IValue> arguments) {
  if (info.entry->random || !takes_any_sizes(*info.entry)) return {};
  torch::jit::Stack stack = StandIns(info, StandIns::Kind::kShrunk).make(arguments);
  if (call_unheard(op, stack)) return {};  // of the sizes or values that it was asked with
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : stack) {
    if (!value.isTensor()) return {};
    results.push_back(value.toTensor());
  }
  return results;
}

bool cpu_lacks_kernel(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  if (info.entry->random || !takes_any_sizes(*info.entry)) return false;
  return refuses_dtypes(op, StandIns(info, StandIns::Kind::kOneElement).make(arguments)) &&
         refuses_dtypes(op, StandIns(info, StandIns::Kind::kWideElement).make(arguments));
}

std::optional<std::string> objection_of_cpu(const c10::OperatorHandle& op, const OpInfo& info,
                                            c10::ArrayRef<c10::IValue> arguments,
                                            c10::ArrayRef<c10::ScalarType> results, size_t result_bytes) {
  constexpr size_t kMaxUsualBytes = size_t{1} << 16;
  const bool is_usual = has_usual_dtypes(arguments);
  // Other operators need not have a kernel on the CPU.
  if (!info.name.starts_with("aten::") || would_crash(info, arguments) || looks_at_lengths(info)) return std::nullopt;
  // Statistics of half types are float32, as on accelerators, where the CPU's forward has given its backward halves.
  if (info.name.ends_with("norm_backward")) return std::nullopt;
  // Other accelerators count integers.
  if (info.name == "aten::histc") return std::nullopt;
  if (total_bytes(arguments) + result_bytes > (is_usual ? kMaxUsualBytes : kMaxTrialBytes)) return std::nullopt;
  const auto kept = keep_generator(info);
  torch::jit::Stack stack = StandIns(info, StandIns::Kind::kCpu, 0).make(arguments);
  const auto refusal = call_unheard(op, stack);
  if (!refusal) {
    // Accelerators keep the statistics of half types in float32.
    const bool is_free = is_usual || info.name.find("norm") != std::string::npos;
    for (size_t i = 0; !is_free && i < std::min(results.size(), stack.size()); ++i) {
      if (stack[i].isTensor() && stack[i].toTensor().defined() && stack[i].toTensor().scalar_type() != results[i]) {
        return "the CPU's kernel has results of another dtype";
      }
    }
    return std::nullopt;
  }
  // The dispatcher's words, and a kernel's for types that accelerators have.
  if (refusal->says("Could not run") || refusal->says("for 'Half'") || refusal->says("for 'BFloat16'")) {
    return std::nullopt;
  }
  stack = StandIns(info, StandIns::Kind::kCpu, 1).make(arguments);
  const auto of_ones = call_unheard(op, stack);
  if (!of_ones || of_ones->words != refusal->words) return std::nullopt;
  return "the CPU's kernel refuses it";  // and says so when it is called
}

}  // namespace torch_pjrt
