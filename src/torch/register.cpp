// Which kernels PyTorch's dispatcher gets from the lowering table.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "ops/registry.h"
#include "torch/op_info.h"
#include "torch/recorder.h"

namespace torch_pjrt {
namespace {

bool is_view(const c10::FunctionSchema& schema) {
  for (const auto& result : schema.returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
  }
  return false;
}

// A composite kernel would take precedence over the backend fallback; where the table has a lowering, it wins.
// Composites that autograd differentiates through (CompositeImplicitAutograd) stay PyTorch's unless the entry says
// otherwise.
bool should_register(const c10::OperatorHandle& op, const OpEntry& entry) {
  if (is_view(op.schema())) return false;
  return entry.override_implicit || !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

const auto libraries = [] {
  auto library =
      std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::XLA, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.compare(0, 6, "aten::") != 0) continue;
    const OpEntry* entry = find_op(base_name(name.name));
    if (entry == nullptr) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op || !should_register(*op, *entry)) continue;
    if (op->hasKernelForDispatchKey(c10::DispatchKey::XLA)) continue;
    const std::string full_name = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    library->impl(full_name.c_str(), torch::CppFunction::makeFromBoxedKernel(
                                         c10::BoxedKernel::makeFromFunctor(std::make_unique<Recorder>(*op))));
  }
  return library;
}();

TORCH_LIBRARY_IMPL(_, XLA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&record_any>()); }

}  // namespace
}  // namespace torch_pjrt
