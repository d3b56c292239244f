#include "torch/recorder.h"

#include <ATen/native/Resize.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>

#include "exec/cut.h"
#include "exec/runtime.h"
#include "exec/timeline.h"
#include "ops/aten_call.h"
#include "ops/host_kernel.h"
#include "torch/access.h"
#include "torch/argument_checks.h"
#include "torch/aten_call.h"
#include "torch/backward_lines.h"
#include "torch/backward_thread.h"
#include "torch/checked_results.h"
#include "torch/device.h"
#include "torch/errors.h"
#include "torch/memo.h"
#include "torch/memory_format.h"
#include "torch/operand_check.h"
#include "torch/overlap.h"
#include "torch/recomputation.h"
#include "torch/scalar_type.h"
#include "torch/step_cuts.h"
#include "torch/storage.h"
#include "torch/trial_call.h"

namespace torch_pjrt {
namespace {

using Kind = ArgumentRule::Kind;

// --- the key of a call
// ----------------------------------------------------------------------------------------------------

// Absorbs all that PyTorch's meta kernels and our lowerings depend on; finds the xla device and refuses others.
class KeyBuilder {
 public:
  explicit KeyBuilder(const OpInfo& info) : hash(info.seed), info_(info) {}

  void add(const ArgumentRule& rule, const c10::IValue& value) {
    switch (rule.kind) {
      case Kind::kTensor:
        if (value.isNone()) return hash.mix(uint64_t{1});
        return add_tensor(value.toTensor());
      case Kind::kTensorList:
        return add_tensor_list(value);
      case Kind::kScalar:
      case Kind::kScalarList:
        return rule.is_constant(value) ? add_static(value) : add_number_kind(value);
      case Kind::kGenerator:
      case Kind::kIgnored:
        // A factory's device; its layout and memory format still shape the meta kernel's answer.
        if (value.isDevice()) {
          const auto device_argument = value.toDevice();
          if (device_argument.type() == c10::DeviceType::XLA) set_device(device_argument);
        }
        return value.isInt() ? hash.mix(value.toInt()) : hash.mix(uint64_t{2});
      case Kind::kDType:
      case Kind::kStatic:
        return add_static(value);
    }
  }

  Hash128 hash;
  int device = -1;

 private:
  void set_device(c10::Device found) {
    const int index = found.has_index() ? found.index() : current_device();
    if (device < 0) device = index;
    TORCH_CHECK(device == index,
                "Expected all tensors to be on the same device, but found at least two devices, xla:", device,
                " and xla:", index, "!");
  }

  void add_tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return hash.mix(uint64_t{3});
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    const auto type = static_cast<uint64_t>(tensor.scalar_type());
    const auto tensor_device = tensor.device();
    if (tensor_device.type() == c10::DeviceType::XLA) {
      set_device(tensor_device);
      const bool is_contiguous = impl.is_contiguous();
      const auto sizes = impl.sizes();
      hash.mix(type << 8 | uint64_t{is_contiguous} << 7 | uint64_t{impl.is_wrapped_number()} << 6 |
               uint64_t{tensor.is_conj()} << 5 | uint64_t{tensor.is_neg()} << 4 | 4);
      hash.mix_range(sizes.begin(), sizes.end());
      // Strides of no elements, and of dimensions of one, are all contiguous, but not all the same.
      if (!is_contiguous || !has_row_major_strides(impl)) {
        const auto strides = impl.strides();
        hash.mix_range(strides.begin(), strides.end());
      }
      return;
    }
    TORCH_CHECK(tensor_device.is_cpu() && tensor.dim() == 0,
                "Expected all tensors to be on the same device, but found at least two devices, xla:",
                device < 0 ? current_device() : device, " and ", tensor_device, "!");
    hash.mix(type << 8 | uint64_t{impl.is_wrapped_number()} << 6 | 5);
  }

  void add_tensor_list(const c10::IValue& value) {
    if (value.isNone()) return hash.mix(uint64_t{6});
    const auto list = value.toListRef();
    hash.mix(static_cast<uint64_t>(list.size()));
    for (const c10::IValue& item : list) {
      if (item.isNone()) {
        hash.mix(uint64_t{1});
      } else {
        add_tensor(item.toTensor());
      }
    }
  }

  void add_number_kind(const c10::IValue& value) {
    if (value.isList()) {
      const auto list = value.toListRef();
      hash.mix(static_cast<uint64_t>(list.size()));
      for (const c10::IValue& item : list) add_number_kind(item);
      return;
    }
    hash.mix(uint64_t{value.isDouble()} | uint64_t{value.isInt()} << 1 | uint64_t{value.isBool()} << 2 |
             uint64_t{value.isComplexDouble()} << 3 | 16);
  }

  void add_static(const c10::IValue& value) {
    if (value.isInt()) {
      hash.mix(uint64_t{7});
      return hash.mix(value.toInt());
    }
    if (value.isBool()) return hash.mix(uint64_t{value.toBool()} | 8);
    if (value.isNone()) return hash.mix(uint64_t{10});
    if (value.isDouble()) {
      hash.mix(uint64_t{11});
      return hash.mix(value.toDouble());
    }
    if (value.isString()) return hash.mix(std::string_view(value.toStringRef()));
    if (value.isComplexDouble()) {
      hash.mix(value.toComplexDouble().real());
      return hash.mix(value.toComplexDouble().imag());
    }
    if (value.isList()) {
      const auto list = value.toListRef();
      hash.mix(static_cast<uint64_t>(list.size()) << 8 | 12);
      for (const c10::IValue& item : list) add_static(item);
      return;
    }
    TP_USER_CHECK(false, kUnimplemented, info_.name, ": an argument of type ", value.tagKind(), " cannot be recorded");
  }

  const OpInfo& info_;
};

// --- run-time inputs
// -------------------------------------------------------------------------------------------------------

// Operands and scalar slots in the order in which make_plan laid them out. Needs the lock.
class InputReader {
 public:
  void add(const ArgumentRule& rule, const c10::IValue& value) {
    if (value.isNone()) return;
    if (rule.kind == Kind::kTensor) return add_tensor(value.toTensor(), rule.is_unread);
    if (rule.kind == Kind::kTensorList) {
      for (const c10::IValue& item : value.toListRef()) {
        if (!item.isNone()) add_tensor(item.toTensor(), rule.is_unread);
      }
      return;
    }
    if (rule.is_constant(value)) return;
    if (rule.kind == Kind::kScalar) return add_number(value);
    for (const c10::IValue& item : value.toListRef()) add_number(item);
  }

  void add_slot(uint64_t bits) { slots.push_back(bits); }

  c10::SmallVector<lazy::Value, 6> operands;
  c10::SmallVector<uint64_t, 6> slots;

 private:
  void add_tensor(const at::Tensor& tensor, bool is_unread) {
    if (!tensor.defined() || is_unread) return;
    if (is_xla(tensor)) {
      operands.push_back(read(tensor));
    } else {
      add_cpu_scalar(tensor);
    }
  }

  void add_cpu_scalar(const at::Tensor& tensor) {
    // at::Tensor::item() would dispatch; the value is right there.
    switch (tensor.scalar_type()) {
      case c10::ScalarType::Double:
        return add_double(*static_cast<const double*>(tensor.const_data_ptr()));
      case c10::ScalarType::Long:
        return add_int(*static_cast<const int64_t*>(tensor.const_data_ptr()));
      case c10::ScalarType::Float:
        return add_double(*static_cast<const float*>(tensor.const_data_ptr()));
      default:
        return add_scalar(tensor.item());
    }
  }

  void add_scalar(const at::Scalar& scalar) {
    if (scalar.isComplex()) {
      add_double(scalar.toComplexDouble().real());
      add_double(scalar.toComplexDouble().imag());
    } else if (scalar.isFloatingPoint()) {
      add_double(scalar.toDouble());
    } else {
      add_int(scalar.to<int64_t>());
    }
  }

  void add_number(const c10::IValue& value) {
    if (value.isDouble()) return add_double(value.toDouble());
    if (value.isInt()) return add_int(value.toInt());
    add_scalar(value.toScalar());
  }

  void add_double(double value) { slots.push_back(std::bit_cast<uint64_t>(value)); }
  void add_int(int64_t value) { slots.push_back(std::bit_cast<uint64_t>(value)); }
};

// --- results
// ----------------------------------------------------------------------------------------------------------------

// Hands out the node's outputs in order: fresh tensors first, then mutated arguments.
class ResultWriter {
 public:
  ResultWriter(const CallPlan& plan, lazy::Node* node, int device) : plan_(plan), node_(node), device_(device) {}

  at::Tensor next_fresh() {
    const size_t i = next_++;
    const CallPlan::Output& output = plan_.outputs[i];
    const lazy::OutputSpec& spec = plan_.signature.outputs[i];
    if (!spec.is_defined) return {};
    at::Tensor tensor = output.is_contiguous ? make_contiguous_tensor(device_, spec.type.dims, output.scalar_type)
                                             : make_tensor(device_, spec.type.dims, spec.strides, output.scalar_type);
    buffer_of(tensor).set({node_, static_cast<uint32_t>(i)}, output.layout);
    return tensor;
  }

  void next_mutated(const at::Tensor& tensor) {
    const size_t i = next_++;
    const lazy::OutputSpec& spec = plan_.signature.outputs[i];
    if (!spec.is_defined || !tensor.defined()) return;
    const Dims& dims = spec.type.dims;
    const auto sizes = tensor.sizes();
    if (!std::equal(sizes.begin(), sizes.end(), dims.begin(), dims.end())) resize_out(tensor, i);
    write(tensor, {node_, static_cast<uint32_t>(i)});
  }

 private:
  // An out= tensor of the wrong size: the plan knows what PyTorch warns of (out_resizing.h).
  void resize_out(const at::Tensor& tensor, size_t i) {
    const lazy::OutputSpec& spec = plan_.signature.outputs[i];
    c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    impl.set_sizes_and_strides(spec.type.dims, spec.strides);
    c10::StorageImpl& storage = *impl.unsafe_storage().unsafeGetStorageImpl();
    const size_t needed =
        (static_cast<size_t>(tensor.storage_offset()) + static_cast<size_t>(impl.numel())) * tensor.itemsize();
    if (storage.nbytes() < needed) resize_storage(storage, needed);
  }

  const CallPlan& plan_;
  lazy::Node* node_;
  int device_;
  size_t next_ = 0;
};

void write_mutated(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments, ResultWriter& results) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!info.arguments[i].is_mutated) continue;
    const c10::IValue& value = arguments[i];
    if (info.arguments[i].kind == Kind::kTensorList) {
      for (const c10::IValue& item : value.toListRef()) results.next_mutated(item.toTensor());
    } else {
      results.next_mutated(value.isNone() ? at::Tensor() : value.toTensor());
    }
  }
}

using Results = c10::SmallVector<c10::IValue, 3>;

void write_results(const OpInfo& info, const CallPlan& plan, c10::ArrayRef<c10::IValue> arguments, lazy::Node* node,
                   int device, Results& returned) {
  ResultWriter results(plan, node, device);
  size_t next_list = 0;
  for (const ReturnRule& rule : info.returns) {
    if (rule.kind == ReturnRule::Kind::kFresh) {
      returned.emplace_back(results.next_fresh());
    } else if (rule.kind == ReturnRule::Kind::kArgument) {
      returned.push_back(arguments[rule.argument]);
    } else {
      c10::List<at::Tensor> list;
      const size_t count = plan.list_sizes[next_list++];
      list.reserve(count);
      for (size_t i = 0; i < count; ++i) list.push_back(results.next_fresh());
      returned.emplace_back(std::move(list));
    }
  }
  write_mutated(info, arguments, results);
  if (info.entry == &aten_check_entry()) {
    make_results_depend_on({node, 0});
    hold_until_cut({node, 0});
  }
}

// A generator argument, or nullopt for the default one.
std::optional<at::Generator> find_generator(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i].kind == Kind::kGenerator && !arguments[i].isNone()) return arguments[i].toGenerator();
  }
  return std::nullopt;
}

void add_random_slots(const OpInfo& info, const CallPlan& plan, c10::ArrayRef<c10::IValue> arguments, int device,
                      InputReader& inputs) {
  const auto count =
      static_cast<uint64_t>(plan.signature.outputs.at(0).type.numel() * info.entry->counters_per_element);
  const RandomCounter counter = advance(find_generator(info, arguments), device, count);
  inputs.add_slot(counter.seed);
  inputs.add_slot(counter.offset);
}

// Tensors that are neither on a device nor single numbers: kernels of PyTorch's take them beside others.
bool has_cpu_arrays(c10::ArrayRef<c10::IValue> arguments) {
  const auto is_cpu_array = [](const c10::IValue& value) {
    return value.isTensor() && value.toTensor().defined() && value.toTensor().is_cpu() && value.toTensor().dim() > 0;
  };
  return std::any_of(arguments.begin(), arguments.end(), [&](const c10::IValue& value) {
    if (!value.isList()) return is_cpu_array(value);
    const auto items = value.toListRef();
    return std::any_of(items.begin(), items.end(), is_cpu_array);
  });
}

// Operators of PyTorch's that want such a tensor beside those on a device.
bool takes_cpu_arrays(const std::string& base_name) {
  return !base_name.starts_with("aten::") || base_name == "aten::_pack_padded_sequence" ||
         base_name == "aten::_ctc_loss" || base_name == "aten::_foreach_copy";
}

// Plans of all operators: the key begins with the operator's.
Memo<CallPlan>& plans() {
  static auto* memo = new Memo<CallPlan>();
  return *memo;
}

// The tensor that is operand `number` of the node.
const at::Tensor& operand_tensor(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments, size_t number) {
  const auto counts = [&](const c10::IValue& value) {
    return value.isTensor() && value.toTensor().defined() && is_xla(value.toTensor()) && number-- == 0;
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i].is_unread) continue;
    if (arguments[i].isTensor() && counts(arguments[i])) return arguments[i].toTensor();
    if (info.arguments[i].kind != Kind::kTensorList || !arguments[i].isList()) continue;
    for (const c10::IValue& item : arguments[i].toListRef()) {
      if (counts(item)) return item.toTensor();
    }
  }
  TP_CHECK(false, info.name, ": no such operand");
}

void record(lazy::Graph& graph, const OpInfo& info, const CallPlan& plan, c10::ArrayRef<c10::IValue> arguments,
            Results& returned) {
  follow_recomputation(graph);
  cut_between_rounds(graph);
  if (Timeline::is_on()) [[unlikely]]
    note_recording(graph);
  InputReader inputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i].is_out) break;
    inputs.add(info.arguments[i], arguments[i]);
  }
  for (const OperandCheck& check : plan.checks) check_if_known(check, operand_tensor(info, arguments, check.operand));
  if (info.entry->random) add_random_slots(info, plan, arguments, graph.device(), inputs);
  lazy::Node* node = graph.record(plan.signature, {inputs.operands.data(), inputs.operands.size()},
                                  {inputs.slots.data(), inputs.slots.size()});
  {
    // Held until the results are: a node without users would be freed.
    const lazy::Value keep(node, 0);
    write_results(info, plan, arguments, node, graph.device(), returned);
  }
  note_recorded(graph, info, plan.signature, arguments);
}

bool is_met(const KernelRule& rule, c10::ArrayRef<c10::IValue> arguments) {
  int64_t most = 0;
  for (const c10::IValue& value : arguments) {
    if (value.isTensor() && value.toTensor().defined()) most = std::max(most, value.toTensor().numel());
  }
  if (most < rule.min_elements || !rule.of_rows) return most >= rule.min_elements;
  const int64_t last = arguments[0].toTensor().dim() - 1;
  return arguments[1].isInt() && (arguments[1].toInt() == -1 || arguments[1].toInt() == last);
}

bool calls_host_kernels() {
  with_c10_errors([] { Runtime::get(); });  // knows whether the plugin takes calls
  return host_kernels_on();
}

}  // namespace

std::optional<std::string> Recorder::try_record(const c10::OperatorHandle& op, const OpInfo& info,
                                                torch::jit::Stack& stack) {
  const size_t num_arguments = info.arguments.size();
  const auto arguments = torch::jit::last(stack, num_arguments);
  Results returned;
  std::vector<c10::Warning> warnings;
  KeyBuilder key(info);
  for (size_t i = 0; i < num_arguments; ++i) key.add(info.arguments[i], arguments[i]);
  mix_overlaps(info, arguments, key.hash);
  const int device = key.device < 0 ? current_device() : key.device;
  if (lazy::LocationScope::current() != 0) [[unlikely]]
    note_forward_line(arguments, lazy::LocationScope::current());
  {
    std::unique_lock lock(lazy::mutex());
    MemoBase::forget_when_idle();
    const CallPlan* plan = plans().find(key.hash);
    if (plan == nullptr) [[unlikely]] {
      lock.unlock();
      auto made = std::make_unique<CallPlan>(&info == &info_ ? make_plan(op, info, arguments, key.hash, device)
                                                             : make_aten_call_plan(op, info, arguments, key.hash));
      lock.lock();
      // Another thread may have made the same plan meanwhile; the first one stays.
      plan = &plans().insert(key.hash, std::move(made));
    }
    if (plan->fallback_reason) return plan->fallback_reason;
    lazy::Graph& graph = lazy::Graph::get(device);
    record(graph, info, *plan, arguments, returned);
    if (!plan->warnings.empty()) [[unlikely]]
      warnings = plan->warnings;
    cut_when_long(graph);
  }
  for (const c10::Warning& warning : warnings) c10::warn(warning);
  torch::jit::drop(stack, num_arguments);
  for (c10::IValue& value : returned) stack.push_back(std::move(value));
  return std::nullopt;
}

void Recorder::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const lazy::LocationScope line;
  run_backward_on_this_thread();
  if (info_.entry == nullptr) return call_kernel(op, stack, "no lowering");
  if (info_.kernel_rule != nullptr && is_met(*info_.kernel_rule, torch::jit::last(*stack, info_.arguments.size())) &&
      calls_host_kernels())
    return call_kernel(op, stack, "PyTorch's kernel is preferred");
  const size_t num_arguments = info_.arguments.size();
  if (info_.takes_cpu_indices) move_cpu_indices(info_, *stack, num_arguments);
  const auto arguments = torch::jit::last(*stack, num_arguments);
  if (info_.accepts != nullptr && !info_.accepts(arguments)) cpu_accepts(op, info_, arguments);
  const auto fallback_reason = with_c10_errors([&] {
    // Nothing recorded there could run, and whoever waits for a worker process should hear of it at once.
    if (Runtime::is_forked_child()) [[unlikely]]
      Runtime::get();
    return try_record(op, info_, *stack);
  });
  if (fallback_reason) call_kernel(op, stack, *fallback_reason);
}

const OpInfo* Recorder::aten_call(const c10::OperatorHandle& op) {
  std::call_once(aten_call_made_, [&] {
    auto info = std::make_unique<OpInfo>(OpInfo::of_aten_call(op));
    if (!is_callable_in_program(op, *info)) return;
    num_aten_calls_ = &counter("ATenInProgram::" + info->name);
    aten_call_ = std::move(info);
  });
  return aten_call_.get();
}

void Recorder::call_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason) {
  if (writes_shared_elements(info_, torch::jit::last(*stack, info_.arguments.size()))) {
    return run_on_storages(op, info_, stack, reason);
  }
  const bool has_arrays = has_cpu_arrays(torch::jit::last(*stack, info_.arguments.size()));
  TORCH_CHECK(!has_arrays || takes_cpu_arrays(info_.name),
              "Expected all tensors to be on the same device, but found at least two devices, xla:", current_device(),
              " and cpu!");
  const auto why_not = with_c10_errors([&]() -> std::optional<std::string> {
    Runtime::get();  // knows whether the plugin takes calls
    const OpInfo* info = host_kernels_on() ? aten_call(op) : nullptr;
    if (info == nullptr || has_arrays) return "";
    if (auto found = try_record(op, *info, *stack)) return found;
    num_aten_calls_->add();
    return std::nullopt;
  });
  if (!why_not) return;
  check_overlaps(op, info_, torch::jit::last(*stack, info_.arguments.size()));  // copies would not overlap
  run_on_cpu(op, stack, why_not->empty() ? reason : concat(reason, "; ", *why_not));
}

void record_any(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  static auto* recorders = new std::unordered_map<const void*, std::unique_ptr<Recorder>>();
  Recorder* recorder = nullptr;
  {
    const lazy::Lock lock(lazy::mutex());
    auto& slot = (*recorders)[&op.schema()];
    if (!slot) slot = std::make_unique<Recorder>(op);
    recorder = slot.get();
  }
  (*recorder)(op, keys, stack);
}

}  // namespace torch_pjrt
