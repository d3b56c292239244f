// What XLA calls for a host call: PyTorch's CPU kernel on XLA's buffers, on a thread of XLA's.
#ifdef TORCH_PJRT_HAVE_FFI
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/recent_map.h"
#include "exec/host_calls.h"
#include "exec/statistics.h"
#include "torch/host_call.h"
#include "torch/host_matmul.h"
#include "torch/host_team.h"
#include "torch/result_memory.h"
#include "xla/ffi/api/c_api.h"

namespace torch_pjrt {
namespace {

using Argument = HostCallPlan::Argument;
using Kind = Argument::Kind;

// --- the plan of a call
// ----------------------------------------------------------------------------------------------------

std::string_view call_text(const XLA_FFI_Attrs& attributes) {
  TORCH_CHECK(attributes.size == 1 && attributes.types[0] == XLA_FFI_AttrType_STRING,
              "host call: expected one attribute, the text of the call");
  const auto* span = static_cast<const XLA_FFI_ByteSpan*>(attributes.attrs[0]);
  return {span->ptr, span->len};
}

// A plan for each text of late: a program has few different calls, a process may have many programs.
std::shared_ptr<const HostCallPlan> plan_of(std::string_view text) {
  constexpr size_t kMaxYoung = 8192;
  static auto* mutex = new std::mutex();
  static auto* plans = new RecentMap<std::shared_ptr<const HostCallPlan>>();
  Hash128 key;
  key.mix(text);
  {
    const std::lock_guard lock(*mutex);
    if (const auto* found = plans->find(key)) return *found;
  }
  auto plan = std::make_shared<const HostCallPlan>(parse_host_call(text));
  const std::lock_guard lock(*mutex);
  if (plans->num_young() >= kMaxYoung) plans->forget();
  return plans->insert(key, std::make_unique<std::shared_ptr<const HostCallPlan>>(std::move(plan)));
}

// --- buffers
// ---------------------------------------------------------------------------------------------------------------

c10::ScalarType scalar_type(XLA_FFI_DataType type) {
  switch (type) {
    case XLA_FFI_DataType_PRED:
      return c10::ScalarType::Bool;
    case XLA_FFI_DataType_S8:
      return c10::ScalarType::Char;
    case XLA_FFI_DataType_S16:
      return c10::ScalarType::Short;
    case XLA_FFI_DataType_S32:
      return c10::ScalarType::Int;
    case XLA_FFI_DataType_S64:
      return c10::ScalarType::Long;
    case XLA_FFI_DataType_U8:
      return c10::ScalarType::Byte;
    case XLA_FFI_DataType_U16:
      return c10::ScalarType::UInt16;
    case XLA_FFI_DataType_U32:
      return c10::ScalarType::UInt32;
    case XLA_FFI_DataType_U64:
      return c10::ScalarType::UInt64;
    case XLA_FFI_DataType_F16:
      return c10::ScalarType::Half;
    case XLA_FFI_DataType_BF16:
      return c10::ScalarType::BFloat16;
    case XLA_FFI_DataType_F32:
      return c10::ScalarType::Float;
    case XLA_FFI_DataType_F64:
      return c10::ScalarType::Double;
    case XLA_FFI_DataType_C64:
      return c10::ScalarType::ComplexFloat;
    case XLA_FFI_DataType_C128:
      return c10::ScalarType::ComplexDouble;
    case XLA_FFI_DataType_F8E4M3FN:
      return c10::ScalarType::Float8_e4m3fn;
    case XLA_FFI_DataType_F8E5M2:
      return c10::ScalarType::Float8_e5m2;
    default:
      TORCH_CHECK(false, "host call: a buffer of XLA's type ", static_cast<int>(type));
  }
}

at::Tensor read_number(const XLA_FFI_Buffer& buffer) {
  return at::from_blob(buffer.data, {}, scalar_type(buffer.dtype));
}

class Buffers {
 public:
  explicit Buffers(const XLA_FFI_CallFrame& frame) : frame_(frame) {}

  const XLA_FFI_Buffer& operand(size_t i) const {
    TORCH_CHECK(i < static_cast<size_t>(frame_.args.size), "host call: operand ", i, " of ", frame_.args.size);
    return *static_cast<const XLA_FFI_Buffer*>(frame_.args.args[i]);
  }
  const XLA_FFI_Buffer& result(size_t i) const {
    TORCH_CHECK(i < static_cast<size_t>(frame_.rets.size), "host call: result ", i, " of ", frame_.rets.size);
    return *static_cast<const XLA_FFI_Buffer*>(frame_.rets.rets[i]);
  }

  at::Tensor view(const XLA_FFI_Buffer& buffer, const std::optional<HostCallPlan::Geometry>& geometry) const {
    const auto options = at::TensorOptions(scalar_type(buffer.dtype));
    if (!geometry) return at::from_blob(buffer.data, {buffer.dims, static_cast<size_t>(buffer.rank)}, options);
    int64_t offset = geometry->offset;
    for (const HostCallPlan::Start& start : geometry->starts) {
      const int64_t index = read_number(operand(start.operand)).item<int64_t>();
      offset += std::clamp<int64_t>(index, 0, start.limit) * start.stride;
    }
    auto* data = static_cast<char*>(buffer.data) + offset * static_cast<int64_t>(options.dtype().itemsize());
    return at::from_blob(data, geometry->sizes, geometry->strides, options);
  }

 private:
  const XLA_FFI_CallFrame& frame_;
};

c10::TypePtr without_optional(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : type;
}

// --- calling
// ---------------------------------------------------------------------------------------------------------------

class Call {
 public:
  Call(const HostCallPlan& plan, const XLA_FFI_CallFrame& frame) : plan_(plan), buffers_(frame) {
    size_t next = 0;
    for (const HostCallPlan::Result& result : plan.results) {
      results_.push_back(result.is_defined ? buffers_.view(buffers_.result(next++), result.geometry) : at::Tensor());
    }
  }

  void run() {
    if (plan_.is_matmul) return host_matmul(tensor(plan_.arguments[0]), tensor(plan_.arguments[1]), results_[0]);
    torch::jit::Stack stack;
    const auto& declared = plan_.op->schema().arguments();
    for (size_t i = 0; i < plan_.arguments.size();) {
      TORCH_CHECK(stack.size() < declared.size(), "host call: more arguments than the schema has");
      stack.push_back(next_argument(i, declared[stack.size()].type()));
    }
    if (plan_.batch_rule != nullptr && call_in_shares(*plan_.batch_rule, *plan_.op, stack, results_)) return;
    if (plan_.is_elementwise) return call_lists_in_shares(*plan_.op, stack);
    const std::lock_guard lock(openmp_team());
    if (plan_.allocates_results) return call_with_result_memory(stack);
    plan_.op->callBoxed(&stack);
    // An out= kernel has written the results already.
    if (!has_out_) write_results(stack);
  }

 private:
  at::Tensor tensor(const Argument& argument) {
    if (argument.kind == Kind::kConstant) return {};
    if (argument.kind == Kind::kUpdated) return updated(argument);
    if (argument.kind == Kind::kEmpty) return mutated_.emplace_back(at::empty({0}, argument.dtype));
    at::Tensor tensor = buffers_.view(buffers_.operand(argument.operand), argument.geometry);
    if (argument.kind == Kind::kWrappedNumber) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    if (argument.kind != Kind::kMutated) return tensor;
    mutated_.push_back(tensor.clone());
    return mutated_.back();
  }

  at::Tensor updated(const Argument& argument) {
    const XLA_FFI_Buffer& operand = buffers_.operand(argument.operand);
    at::Tensor& result = results_.at(argument.result);
    // XLA has been told that they are one memory.
    if (result.data_ptr() != operand.data) result.copy_(buffers_.view(operand, std::nullopt));
    return result;
  }

  c10::IValue next_argument(size_t& i, const c10::TypePtr& type) {
    const Argument& argument = plan_.arguments[i++];
    switch (argument.kind) {
      case Kind::kConstant:
        return argument.constant;
      case Kind::kTensor:
      case Kind::kMutated:
      case Kind::kUpdated:
      case Kind::kWrappedNumber:
      case Kind::kEmpty:
        return tensor(argument);
      case Kind::kNumber:
        return number(argument, *without_optional(type));
      case Kind::kGenerator:
        return generator(argument);
      case Kind::kResult:
        has_out_ = true;
        return results_.at(argument.operand);
      case Kind::kList: {
        const auto list = without_optional(type)->cast<c10::ListType>();
        TORCH_CHECK(list, "host call: a list for an argument of type ", type->str());
        i += argument.count;
        return next_list(i - argument.count, i, list->getElementType());
      }
    }
    return {};
  }

  c10::IValue number(const Argument& argument, const c10::Type& type) const {
    const at::Scalar value = read_number(buffers_.operand(argument.operand)).item();
    if (type.kind() == c10::TypeKind::FloatType) return value.toDouble();
    return value;
  }

  c10::IValue generator(const Argument& argument) const {
    const auto read = [&](size_t operand) { return *static_cast<const uint64_t*>(buffers_.operand(operand).data); };
    // ATen's generator starts from 32 bits, so all of both go into each (SplitMix64).
    uint64_t mixed = read(argument.operand) + read(argument.offset_operand) * 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return at::detail::createCPUGenerator(mixed ^ (mixed >> 31));
  }

  c10::IValue next_list(size_t begin, size_t end, const c10::TypePtr& element) {
    const bool is_optional = element->kind() == c10::TypeKind::OptionalType;
    const auto type = without_optional(element);
    if (type->kind() != c10::TypeKind::TensorType) {
      c10::impl::GenericList numbers(type);
      for (size_t i = begin; i < end; ++i) numbers.push_back(number(plan_.arguments[i], *type));
      return numbers;
    }
    c10::List<at::Tensor> tensors;
    c10::List<std::optional<at::Tensor>> optional_tensors;
    for (size_t i = begin; i < end; ++i) {
      const at::Tensor item = tensor(plan_.arguments[i]);
      if (is_optional) {
        optional_tensors.push_back(item.defined() ? std::optional(item) : std::nullopt);
      } else {
        tensors.push_back(item);
      }
    }
    if (is_optional) return optional_tensors;
    return tensors;
  }

  void call_with_result_memory(torch::jit::Stack& stack) {
    ResultMemory memory(results_, plan_.num_skipped_allocations);
    plan_.op->callBoxed(&stack);
    std::vector<at::Tensor> values;
    for (size_t i = 0; i < results_.size(); ++i) values.push_back(std::move(stack[i]).toTensor());
    stack.clear();
    memory.write(std::move(values));
  }

  // Fresh results come first, then the new values of mutated arguments.
  void write_results(const torch::jit::Stack& returned) {
    size_t next = 0;
    const auto write = [&](const at::Tensor& value) {
      at::Tensor& result = results_.at(next++);
      if (!result.defined()) return;
      TORCH_CHECK(value.defined() && value.sizes() == result.sizes(), "result ", next - 1, " has sizes ",
                  value.defined() ? value.sizes() : at::IntArrayRef(), ", when the call was recorded they were ",
                  result.sizes());
      result.copy_(value);
    };
    const auto& returns = plan_.op->schema().returns();
    for (size_t i = 0; i < returned.size(); ++i) {
      const auto* alias = returns[i].alias_info();
      if (alias != nullptr && alias->isWrite()) continue;
      if (returned[i].isTensorList()) {
        for (const at::Tensor& item : returned[i].toTensorVector()) write(item);
      } else {
        write(returned[i].isTensor() ? returned[i].toTensor() : at::Tensor());
      }
    }
    for (const at::Tensor& tensor : mutated_) {
      // None in the place of a tensor that would be updated has a result that is not defined, and no tensor.
      while (next < results_.size() && !results_[next].defined()) ++next;
      write(tensor);
    }
  }

  const HostCallPlan& plan_;
  const Buffers buffers_;
  std::vector<at::Tensor> results_, mutated_;
  bool has_out_ = false;
};

// Where each element is touched a few times: below it, what other threads would do is less than waking them costs.
constexpr int64_t kMinBytesForThreads = 4 << 20;

int64_t size_bytes(const XLA_FFI_Buffer& buffer) {
  return c10::multiply_integers(buffer.dims, buffer.dims + buffer.rank) *
         static_cast<int64_t>(c10::elementSize(scalar_type(buffer.dtype)));
}

// Of all operands and results.
int64_t size_bytes(const XLA_FFI_CallFrame& frame) {
  int64_t sum = 0;
  for (int64_t i = 0; i < frame.args.size; ++i) sum += size_bytes(*static_cast<XLA_FFI_Buffer*>(frame.args.args[i]));
  for (int64_t i = 0; i < frame.rets.size; ++i) sum += size_bytes(*static_cast<XLA_FFI_Buffer*>(frame.rets.rets[i]));
  return sum;
}

class XlaPool final : public WorkerPool {
 public:
  explicit XlaPool(const XLA_FFI_CallFrame& frame) : frame_(frame) {}

  int64_t num_threads() const override {
    int64_t count = 1;
    XLA_FFI_ThreadPool_NumThreads_Args args{};
    args.struct_size = XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE;
    args.ctx = frame_.ctx;
    args.num_threads = &count;
    return exists() && is_ok(frame_.api->XLA_FFI_ThreadPool_NumThreads(&args)) ? count : 1;
  }

  bool schedule(void (*task)(void*), void* data) const override {
    XLA_FFI_ThreadPool_Schedule_Args args{};
    args.struct_size = XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE;
    args.ctx = frame_.ctx;
    args.task = task;
    args.data = data;
    return exists() && is_ok(frame_.api->XLA_FFI_ThreadPool_Schedule(&args));
  }

 private:
  // A plugin of an older version has a shorter table.
  bool exists() const {
    constexpr size_t kEnd = offsetof(XLA_FFI_Api, XLA_FFI_ThreadPool_NumThreads) + sizeof(void*);
    return frame_.api->struct_size >= kEnd;
  }
  bool is_ok(XLA_FFI_Error* error) const {
    if (error == nullptr) return true;
    XLA_FFI_Error_Destroy_Args args{};
    args.struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE;
    args.error = error;
    frame_.api->XLA_FFI_Error_Destroy(&args);
    return false;
  }

  const XLA_FFI_CallFrame& frame_;
};

// Records how long at least one call runs: calls that overlap count once.
class TimeInCalls {
 public:
  TimeInCalls() {
    const std::lock_guard lock(mutex());
    if (num_running_++ == 0) start_ = std::chrono::steady_clock::now();
  }
  TimeInCalls(const TimeInCalls&) = delete;
  TimeInCalls& operator=(const TimeInCalls&) = delete;
  ~TimeInCalls() {
    static Metric& metric = torch_pjrt::metric("HostCallTime");
    const std::lock_guard lock(mutex());
    if (--num_running_ > 0) return;
    metric.record(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  }

 private:
  static std::mutex& mutex() {
    static auto* mutex = new std::mutex();
    return *mutex;
  }
  inline static int num_running_ = 0;
  inline static std::chrono::steady_clock::time_point start_;
};

void run_call(const XLA_FFI_CallFrame& frame) {
  const c10::InferenceMode no_autograd;
  const std::shared_ptr<const HostCallPlan> kept = plan_of(call_text(frame.attrs));
  const HostCallPlan& plan = *kept;
  const XlaPool pool(frame);
  const UsesPool uses_pool(pool);
  const TimeInCalls time;
  std::optional<SingleThreaded> alone;
  if (plan.is_linear && size_bytes(frame) < kMinBytesForThreads) alone.emplace();
  Call(plan, frame).run();
}

// --- the handler
// -----------------------------------------------------------------------------------------------------------

std::atomic<bool> g_is_accepted{false};

// A plugin refuses a handler of a newer version than its own. This one uses only what all versions have.
void tell_version(const XLA_FFI_CallFrame& frame, XLA_FFI_Metadata& metadata) {
  metadata.api_version.major_version = XLA_FFI_API_MAJOR;
  metadata.api_version.minor_version = XLA_FFI_API_MINOR;
  if (frame.api != nullptr && frame.api->api_version.major_version == XLA_FFI_API_MAJOR) {
    metadata.api_version.minor_version = std::min(XLA_FFI_API_MINOR, frame.api->api_version.minor_version);
  }
  metadata.traits = 0;
  // The plugin asks when the handler is registered: it runs no program yet.
  ResultMemory::prepare();
  g_is_accepted = true;
}

ErrorCode code_of(const std::exception& error) {
  const auto is = [&]<typename T>(const T*) { return dynamic_cast<const T*>(&error) != nullptr; };
  if (is(static_cast<const c10::IndexError*>(nullptr))) return ErrorCode::kIndexError;
  if (is(static_cast<const c10::ValueError*>(nullptr))) return ErrorCode::kValueError;
  if (is(static_cast<const c10::TypeError*>(nullptr))) return ErrorCode::kTypeError;
  if (is(static_cast<const c10::NotImplementedError*>(nullptr))) return ErrorCode::kUnimplemented;
  if (is(static_cast<const c10::LinAlgError*>(nullptr))) return ErrorCode::kLinAlgError;
  if (is(static_cast<const c10::OutOfMemoryError*>(nullptr))) return ErrorCode::kOutOfMemory;
  if (is(static_cast<const std::bad_alloc*>(nullptr))) return ErrorCode::kOutOfMemory;
  return ErrorCode::kInvalidArgument;
}

// The operator's name, unless it is one of our checks, which speak for another one.
std::string_view operator_name(const XLA_FFI_CallFrame& frame) {
  const std::string_view call = call_text(frame.attrs);
  return call.starts_with("torch_pjrt::") ? "" : call.substr(0, call.find(' '));
}

// XLA's codes are fewer than PyTorch's classes: the class is in the message.
XLA_FFI_Error* make_error(const XLA_FFI_CallFrame& frame, const std::exception& error) noexcept {
  std::string message = "a kernel of PyTorch failed";
  try {
    const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
    message =
        to_plugin_message(code_of(error), c10_error != nullptr ? c10_error->what_without_backtrace() : error.what(),
                          operator_name(frame));
  } catch (const std::exception&) {
    // What is known is said.
  }
  XLA_FFI_Error_Create_Args args{};
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = message.c_str();
  args.errc = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  return frame.api->XLA_FFI_Error_Create(&args);
}

XLA_FFI_Error* handle(XLA_FFI_CallFrame* frame) {
  for (auto* extension = frame->extension_start; extension != nullptr; extension = extension->next) {
    if (extension->type != XLA_FFI_Extension_Metadata) continue;
    tell_version(*frame, *reinterpret_cast<XLA_FFI_Metadata_Extension*>(extension)->metadata);
    return nullptr;
  }
  try {
    run_call(*frame);
    return nullptr;
  } catch (const std::exception& error) {
    return make_error(*frame, error);
  } catch (...) {
    return make_error(*frame, std::runtime_error("unknown exception"));
  }
}

const bool g_is_set = [] {
  set_host_call_handler({reinterpret_cast<void*>(&handle), [] { return g_is_accepted.load(); }});
  return true;
}();

}  // namespace
}  // namespace torch_pjrt
#endif
