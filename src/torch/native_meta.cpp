#include "torch/native_meta.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "torch/meta_rules.h"

namespace torch_pjrt {
namespace {

using c10::DispatchKey;
using torch::jit::Stack;

// While it is on, each operator that is called comes to us before anything else, those within a composite too.
constexpr DispatchKey kMode = DispatchKey::TESTING_ONLY_GenericMode;
// A backend without kernels of its own: for it the dispatcher knows the composites, and the functions that run a
// structured kernel's shape function and then its out= operator.
constexpr DispatchKey kBareBackend = DispatchKey::IPU;

struct Kernels {
  std::optional<c10::SafeKernelFunction> kernel;
  DispatchKey key = kBareBackend;
  bool is_structured = false;
  MetaRule rule = nullptr;
  std::string_view base_name;  // "aten::add" of aten::add_.Tensor
  size_t num_out = 0;          // out= arguments, which come last
};

std::optional<c10::SafeKernelFunction> kernel_for(const c10::OperatorHandle& op, DispatchKey key) {
  if (!op.hasComputedKernelForDispatchKey(key)) return std::nullopt;
  c10::SafeKernelFunction kernel = op.getComputedKernelForDispatchKey(key);
  // "registered at .../torch/_meta_registrations.py:54"
  if (kernel.debug().find(".py:") != std::string::npos) return std::nullopt;
  return kernel;
}

Kernels find_kernels(const c10::OperatorHandle& op) {
  Kernels found;
  const c10::FunctionSchema& schema = op.schema();
  found.base_name = schema.name();
  if (found.base_name.ends_with('_') && !found.base_name.ends_with("__")) found.base_name.remove_suffix(1);
  for (const c10::Argument& argument : schema.arguments()) found.num_out += argument.is_out();
  found.rule = find_meta_rule(op.operator_name());
  if ((found.kernel = kernel_for(op, DispatchKey::Meta))) {
    found.key = DispatchKey::Meta;
    return found;
  }
  if (op.hasKernelForDispatchKey(kBareBackend)) return found;
  found.is_structured = op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
  // Where the CPU has a kernel of its own, a composite need not give the same strides.
  if (found.is_structured || !op.hasKernelForDispatchKey(DispatchKey::CPU)) found.kernel = kernel_for(op, kBareBackend);
  return found;
}

// Operators are few and stay.
const Kernels& kernels_of(const c10::OperatorHandle& op) {
  static auto& mutex = *new std::mutex();
  static auto& all = *new std::unordered_map<c10::OperatorName, Kernels>();
  const std::lock_guard lock(mutex);
  const auto found = all.find(op.operator_name());
  if (found != all.end()) return found->second;
  return all.emplace(op.operator_name(), find_kernels(op)).first->second;
}

// The structured operator whose shape function ran last: its out= operator would only compute.
thread_local std::string_view running;

class Running {
 public:
  explicit Running(std::string_view name) : outer_(std::exchange(running, name)) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { running = outer_; }

 private:
  std::string_view outer_;
};

void call(const c10::OperatorHandle& op, Stack* stack) {
  const Kernels& kernels = kernels_of(op);
  if (kernels.num_out > 0 && kernels.base_name == running) {
    stack->erase(stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size()),
                 stack->end() - static_cast<std::ptrdiff_t>(kernels.num_out));
    return;
  }
  if (kernels.rule != nullptr) {
    const size_t num_arguments = op.schema().arguments().size();
    Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(num_arguments), stack->end());
    stack->resize(stack->size() - num_arguments);
    kernels.rule(arguments);
    stack->insert(stack->end(), arguments.begin(), arguments.end());
    return;
  }
  if (!kernels.kernel) throw NoNativeMeta();
  const Running scope(kernels.is_structured ? kernels.base_name : std::string_view());
  kernels.kernel->callBoxed(op, c10::DispatchKeySet(kernels.key), stack);
}

// What a composite calls on its way.
void call_in_mode(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const bool is_meta = keys.has_backend(c10::BackendComponent::MetaBit) ||
                       std::any_of(arguments.begin(), arguments.end(), [](const c10::IValue& value) {
                         return value.isDevice() && value.toDevice().is_meta();
                       });
  if (is_meta) return call(op, stack);
  const c10::impl::ExcludeDispatchKeyGuard outside(kMode);
  op.callBoxed(stack);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&call_in_mode>());
}

}  // namespace

NativeMeta run_native_meta(const c10::OperatorHandle& op, Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard excluded(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                                    c10::autocast_dispatch_keyset);
  const c10::impl::IncludeDispatchKeyGuard mode(kMode);
  try {
    call(op, &stack);
    return NativeMeta::kTaken;
  } catch (const c10::NotImplementedError&) {
    return NativeMeta::kNone;
  } catch (const c10::Error&) {
    return NativeMeta::kRefused;  // in words that the next one to ask knows, too
  } catch (const std::exception&) {
    return NativeMeta::kNone;
  }
}

}  // namespace torch_pjrt
