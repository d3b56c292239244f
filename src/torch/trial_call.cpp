#include "torch/trial_call.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "torch/overlap.h"
#include "torch/storage.h"

namespace torch_pjrt {
namespace {

// Makes stand-ins for the xla tensors of a call, of the same kind on another device.
class StandIns {
 public:
  enum class Kind {
    kMeta,         // without data
    kCpu,          // of one value, zero if not told; they share memory as the originals do
    kOneElement,   // zeros on the CPU, one element each: they cost nothing, and show the dtypes
    kWideElement,  // the same, with float32 for the smaller floats
    kShrunk        // ones on the CPU, at most two a dimension, with the strides' order
  };

  explicit StandIns(const OpInfo& info, Kind kind, int value = 0) : info_(info), kind_(kind), value_(value) {}

  torch::jit::Stack make(c10::ArrayRef<c10::IValue> arguments) {
    torch::jit::Stack stack;
    for (size_t i = 0; i < arguments.size(); ++i) stack.push_back(make(info_.arguments[i], arguments[i]));
    return stack;
  }

 private:
  c10::IValue make(const ArgumentRule& rule, const c10::IValue& value) {
    if (rule.kind == ArgumentRule::Kind::kGenerator) {
      // The default one keeps its state.
      return kind_ == Kind::kMeta ? c10::IValue() : c10::IValue(at::detail::createCPUGenerator());
    }
    if (value.isDevice())
      return c10::IValue(c10::Device(kind_ == Kind::kMeta ? c10::DeviceType::Meta : c10::DeviceType::CPU));
    if (rule.kind == ArgumentRule::Kind::kTensor && value.isTensor()) return make(value.toTensor());
    if (rule.kind != ArgumentRule::Kind::kTensorList || value.isNone()) return value;
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(make(tensor));
      return list;
    }
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional(make(*tensor)) : std::nullopt);
    }
    return list;
  }

  at::Tensor make(const at::Tensor& tensor) {
    if (!tensor.defined() || !is_xla(tensor)) return tensor;
    // One tensor given twice stays one: kernels compare identities.
    at::Tensor& other = made_[tensor.unsafeGetTensorImpl()];
    if (other.defined()) return other;
    other = make_like(tensor);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) other.unsafeGetTensorImpl()->set_wrapped_number(true);
    other._set_conj(tensor.is_conj());
    other._set_neg(tensor.is_neg());
    return other;
  }

  at::Tensor make_like(const at::Tensor& tensor) {
    if (kind_ == Kind::kCpu) return make_on_cpu(tensor);
    if (kind_ == Kind::kMeta) {
      return at::empty_strided(tensor.sizes(), tensor.strides(),
                               at::TensorOptions().dtype(tensor.scalar_type()).device(c10::DeviceType::Meta));
    }
    if (kind_ == Kind::kShrunk) return make_shrunk(tensor);
    const c10::ScalarType type = tensor.scalar_type();
    const bool widens = kind_ == Kind::kWideElement && c10::isFloatingType(type) && c10::elementSize(type) < 4;
    return at::zeros(Dims(static_cast<size_t>(tensor.dim()), 1), widens ? at::kFloat : type);
  }

  at::Tensor make_on_cpu(const at::Tensor& tensor) {
    at::Tensor& bytes = bytes_[tensor.storage().unsafeGetStorageImpl()];
    if (!bytes.defined()) {
      bytes = at::zeros({static_cast<int64_t>(tensor.storage().nbytes())}, at::kByte);
      if (value_ != 0) at::empty({0}, tensor.scalar_type()).set_(bytes.storage()).fill_(value_);
    }
    return at::empty({0}, tensor.scalar_type())
        .set_(bytes.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  }

  static at::Tensor make_shrunk(const at::Tensor& tensor) {
    const auto rank = static_cast<size_t>(tensor.dim());
    Dims sizes(tensor.sizes().begin(), tensor.sizes().end());
    for (int64_t& size : sizes) size = std::min<int64_t>(size, 2);
    std::vector<size_t> inner_first(rank);
    std::iota(inner_first.begin(), inner_first.end(), size_t{0});
    std::stable_sort(inner_first.begin(), inner_first.end(),
                     [&](size_t a, size_t b) { return tensor.stride(a) < tensor.stride(b); });
    Dims strides(rank);
    int64_t next = 1, previous = 0, last = 0;
    for (const size_t dim : inner_first) {
      const int64_t original = tensor.stride(static_cast<int64_t>(dim));
      // Equal strides, zero among them, stay equal.
      if (original != previous) last = next;
      strides[dim] = last;
      previous = original;
      next = std::max(next, last * sizes[dim]);
    }
    return at::ones({int64_t{1} << rank}, tensor.scalar_type()).as_strided(sizes, strides);
  }

  const OpInfo& info_;
  Kind kind_;
  int value_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> made_;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> bytes_;
};

// What the arguments' storages hold.
size_t total_bytes(c10::ArrayRef<c10::IValue> arguments) {
  size_t bytes = 0;
  const auto add = [&](const at::Tensor& tensor) { bytes += tensor.defined() ? tensor.storage().nbytes() : 0; };
  for (const c10::IValue& value : arguments) {
    if (value.isTensor()) add(value.toTensor());
    if (!value.isList()) continue;
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor()) add(item.toTensor());
    }
  }
  return bytes;
}

// The kernel of the backend itself, not those of autograd and autocast before it.
const auto kAboveBackend = c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;

// What a stand-in's call warns of, the call itself warns of.
class Unheard : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

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
  const c10::impl::ExcludeDispatchKeyGuard guard(kAboveBackend);
  try {
    op.callBoxed(&stack);
  } catch (const c10::NotImplementedError& error) {
    return std::string_view(error.what_without_backtrace()).find("not implemented for '") != std::string_view::npos;
  } catch (const c10::Error& error) {
    // Where kernels demand that two arguments have the same type.
    if (std::string_view(error.what_without_backtrace()).find("of scalar type") != std::string_view::npos) throw;
  } catch (const std::exception&) {
    return false;
  }
  return false;
}

}  // namespace

torch::jit::Stack on_meta(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  return StandIns(info, StandIns::Kind::kMeta).make(arguments);
}

bool run_meta(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments,
              torch::jit::Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard guard(kAboveBackend);
  try {
    op.callBoxed(&stack);
    return true;
  } catch (const c10::NotImplementedError&) {
    return false;
  } catch (const std::exception&) {
    // Many meta kernels are written in Python, with words of their own.
    if (cpu_accepts(op, info, arguments)) return false;
    throw;
  }
}

bool cpu_accepts(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  constexpr size_t kMaxBytes = size_t{1} << 30;  // what an error message may cost
  if (total_bytes(arguments) > kMaxBytes) return false;
  torch::jit::Stack stack = StandIns(info, StandIns::Kind::kCpu).make(arguments);
  try {
    op.callBoxed(&stack);
    return true;
  } catch (const c10::NotImplementedError& error) {
    // The dispatcher's words for an operator without a kernel; a kernel's own are about the dtype.
    if (std::string_view(error.what()).find("Could not run") == std::string_view::npos) throw;
    return false;
  }
}

Trial try_on_cpu(const c10::OperatorHandle& op, const OpInfo& info, c10::ArrayRef<c10::IValue> arguments, int value) {
  constexpr size_t kMaxBytes = size_t{4} << 20;  // bounds the time that a first call takes more
  Trial trial;
  if (total_bytes(arguments) > kMaxBytes) return trial;
  trial.arguments = StandIns(info, StandIns::Kind::kCpu, value).make(arguments);
  trial.results = trial.arguments;
  const c10::impl::ExcludeDispatchKeyGuard guard(kAboveBackend);
  try {
    op.callBoxed(&trial.results);
    trial.outcome = Trial::Outcome::kTaken;
  } catch (const c10::NotImplementedError&) {
    throw;
  } catch (const c10::Error& error) {
    trial.outcome = Trial::Outcome::kRefused;
    trial.refusal = error.what_without_backtrace();
  } catch (const std::exception& error) {
    trial.outcome = Trial::Outcome::kRefused;
    trial.refusal = error.what();
  }
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
  const bool has_out =
      std::any_of(info.arguments.begin(), info.arguments.end(), [](const ArgumentRule& rule) { return rule.is_out; });
  if (!has_out && !writes_integers(info, arguments)) return;
  constexpr size_t kMaxBytes = size_t{1} << 26;
  const std::optional<KeptGenerator> kept =
      info.entry->random ? std::optional<KeptGenerator>(std::in_place) : std::nullopt;
  const bool shrinks = takes_any_sizes(*info.entry);
  if (!shrinks && total_bytes(arguments) > kMaxBytes) return;
  torch::jit::Stack stack =
      StandIns(info, shrinks ? StandIns::Kind::kOneElement : StandIns::Kind::kCpu).make(arguments);
  Unheard unheard;
  const c10::WarningUtils::WarningHandlerGuard silence(&unheard);
  const c10::impl::ExcludeDispatchKeyGuard guard(kAboveBackend);
  try {
    op.callBoxed(&stack);
  } catch (const c10::Error& error) {
    // What else it says is about the values or the sizes that it was asked with.
    if (!is_about_types(error.what_without_backtrace())) return;
    // With the sizes of the call, another error may come first.
    if (!cpu_accepts(op, info, arguments)) throw;
  }
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
  Unheard unheard;
  const c10::WarningUtils::WarningHandlerGuard silence(&unheard);
  const c10::impl::ExcludeDispatchKeyGuard guard(kAboveBackend);
  std::vector<at::Tensor> results;
  try {
    op.callBoxed(&stack);
  } catch (const std::exception&) {
    return {};  // of the sizes or values that it was asked with
  }
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

}  // namespace torch_pjrt
