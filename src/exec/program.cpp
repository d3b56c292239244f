#include "exec/program.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include "exec/device_memory.h"
#include "exec/runtime.h"
#include "exec/statistics.h"
#include "exec/timeline.h"

namespace torch_pjrt {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// With several devices in the process a one-device program is compiled once for all of them.
bool is_portable(const ProgramSpec& spec, const Runtime& runtime) {
  return spec.num_replicas * spec.num_partitions == 1 && runtime.num_devices() > 1;
}

pjrt::CompileOptions make_options(const ProgramSpec& spec, const Runtime& runtime) {
  pjrt::CompileOptions options;
  options.num_replicas = spec.num_replicas;
  options.num_partitions = spec.num_partitions;
  options.use_spmd_partitioning = spec.num_partitions > 1;
  options.use_shardy_partitioner = spec.num_partitions > 1;
  options.portable = is_portable(spec, runtime);
  options.overrides = spec.overrides;
  for (const pjrt::OptionOverride& fallback : runtime.default_overrides()) {
    const bool is_set = std::any_of(spec.overrides.begin(), spec.overrides.end(),
                                    [&](const pjrt::OptionOverride& own) { return own.first == fallback.first; });
    if (!is_set) options.overrides.push_back(fallback);
  }
  return options;
}

Ref<ProgramRecord> make_record(const ProgramSpec& spec, const pjrt::Executable& executable, double compile_seconds,
                               bool from_disk_cache) {
  auto record = make_ref<ProgramRecord>();
  record->name = executable.name();
  record->cause = spec.cause;
  record->explanation = spec.explanation;
  record->largest_value = spec.largest_value;
  record->compile_seconds = compile_seconds;
  record->from_disk_cache = from_disk_cache;
  record->num_nodes = spec.num_nodes;
  record->num_parameters = static_cast<int64_t>(spec.parameters.size());
  record->num_outputs = static_cast<int64_t>(spec.outputs.size());
  if (const auto stats = executable.memory_stats()) {
    record->argument_bytes = stats->argument_bytes;
    record->output_bytes = stats->output_bytes;
    record->temp_bytes = stats->temp_bytes;
    record->alias_bytes = stats->alias_bytes;
    record->generated_code_bytes = stats->generated_code_bytes;
  }
  add_program_record(record);
  return record;
}

std::string in_gib(int64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text.data();
}

// Raw pointers of one launch; kept by each thread, so that a run allocates nothing for them.
struct LaunchArrays {
  std::vector<PJRT_Buffer*> arguments;              // [device][argument]
  std::vector<PJRT_Buffer* const*> argument_lists;  // [device]
  std::vector<PJRT_Buffer*> outputs;                // [device][output]
  std::vector<PJRT_Buffer**> output_lists;          // [device]
  std::vector<PJRT_Event*> done;                    // [device]

  void arrange(std::span<DeviceValue* const> values, size_t num_outputs, size_t num_devices) {
    arguments.resize(values.size() * num_devices);
    outputs.assign(num_outputs * num_devices, nullptr);
    done.assign(num_devices, nullptr);
    argument_lists.resize(num_devices);
    output_lists.resize(num_devices);
    for (size_t d = 0; d < num_devices; ++d) {
      for (size_t i = 0; i < values.size(); ++i) arguments[d * values.size() + i] = values[i]->buffers()[d].raw();
      argument_lists[d] = arguments.data() + d * values.size();
      output_lists[d] = outputs.data() + d * num_outputs;
    }
  }
};

}  // namespace

Program::Program(ProgramSpec spec, pjrt::Executable executable, double compile_seconds, bool from_disk_cache)
    : executable_(std::move(executable)),
      record_(make_record(spec, executable_, compile_seconds, from_disk_cache)),
      num_devices_(static_cast<size_t>(spec.num_replicas * spec.num_partitions)),
      portable_(is_portable(spec, Runtime::get())),
      parameters_(std::move(spec.parameters)),
      outputs_(std::move(spec.outputs)),
      donated_(std::move(spec.donated)) {
  TP_CHECK(executable_.num_outputs() == outputs_.size(), "the program has ", executable_.num_outputs(),
           " outputs, not ", outputs_.size());
}

void Program::check_arguments(std::span<DeviceValue* const> arguments, int device) const {
  TP_CHECK(arguments.size() == parameters_.size(), "program ", record_->id, " takes ", parameters_.size(),
           " arguments, not ", arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const DeviceValue& argument = *arguments[i];
    argument.check_not_lost();
    TP_CHECK(!argument.is_donated(), "argument ", i, " of program ", record_->id, " was donated to an earlier run");
    TP_CHECK(argument.buffers().size() == num_devices_ && argument.device() == device, "argument ", i, " of program ",
             record_->id, " lies on ", argument.buffers().size(), " devices from xla:", argument.device());
  }
}

// Found while running, it would cost the values of everything else in the program.
void Program::check_memory(int device) const {
  const int64_t needed = record_->temp_bytes + record_->output_bytes - record_->alias_bytes;
  const int64_t limit = Runtime::get().memory_limit(device);
  if (limit == 0 || needed <= limit) return;
  throw explain(
      Error(ErrorCode::kOutOfMemory, concat("xla:", device, " out of memory. Tried to allocate ", in_gib(needed),
                                            " for results and temporaries; the device has ", in_gib(limit))),
      *record_);
}

std::vector<Ref<DeviceValue>> Program::run(std::span<DeviceValue* const> arguments, int device,
                                           std::span<const int64_t> keep, Ref<RunOutcome> outcome) {
  static Metric& execute_time = metric("ExecuteTime");
  thread_local LaunchArrays arrays;
  Runtime& runtime = Runtime::get();
  check_arguments(arguments, device);
  check_memory(device);
  TP_CHECK(!outcome || num_devices_ == 1, "the outcome of a run on ", num_devices_, " devices");
  arrays.arrange(arguments, outputs_.size(), num_devices_);

  pjrt::Launch launch;
  launch.argument_lists = arrays.argument_lists;
  launch.num_arguments = arguments.size();
  launch.non_donatable_input_indices = keep;
  if (portable_) launch.execute_device = runtime.device(device).raw();
  const Clock::time_point start = Clock::now();
  try {
    executable_.execute(launch, arrays.output_lists.data(), arrays.done.data());
  } catch (const Error& error) {
    const Error explained = explain(error, *record_);
    mark_deleted(arguments, explained);
    throw explained;
  }

  // The first run frees some of what the program was made with.
  if (record_->runs.fetch_add(1, std::memory_order_relaxed) == 1)
    runtime.return_compiler_memory(record_->compile_seconds);
  consume(arguments, keep);
  std::vector<Ref<DeviceValue>> outputs = wrap_outputs(arrays.outputs, device, outcome);
  const pjrt::Api api = runtime.client().api();
  for (size_t d = 0; d < num_devices_; ++d) {
    InFlight& in_flight = runtime.in_flight(device + static_cast<int>(d));
    const InFlight::Ticket ticket = in_flight.start();
    pjrt::Event(api, arrays.done[d])
        .on_ready([&in_flight, ticket, start, record = record_, outcome](const Error* error) {
          execute_time.record(seconds_since(start));
          Timeline::get().add(TimelineEvent::Kind::kExecute, start, Clock::now(), record->id);
          if (outcome) outcome->finish(error == nullptr);
          if (error == nullptr) {
            in_flight.finish(ticket, nullptr);
            return;
          }
          const Error explained = explain(*error, *record);
          in_flight.finish(ticket, &explained);
        });
  }
  return outputs;
}

std::vector<Ref<DeviceValue>> Program::run(std::span<const Ref<DeviceValue>> arguments, int device) {
  std::vector<DeviceValue*> raw(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) raw[i] = arguments[i].get();
  return run(raw, device);
}

void Program::consume(std::span<DeviceValue* const> arguments, std::span<const int64_t> keep) const {
  for (size_t i = 0; i < donated_.size(); ++i) {
    if (!donated_[i] || std::find(keep.begin(), keep.end(), static_cast<int64_t>(i)) != keep.end()) continue;
    arguments[i]->mark_donated();
  }
}

void Program::mark_deleted(std::span<DeviceValue* const> arguments, const Error& error) const {
  for (size_t i = 0; i < donated_.size(); ++i) {
    if (donated_[i] && arguments[i]->buffers()[0].is_deleted()) arguments[i]->mark_lost(error);
  }
}

void Program::measure_outputs(const std::vector<PJRT_Buffer*>& raw) {
  const pjrt::Api api = Runtime::get().client().api();
  output_sizes_bytes_.resize(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    pjrt::Buffer borrowed(api, raw[i]);
    output_sizes_bytes_[i] = borrowed.on_device_size_bytes();
    borrowed.leak();
  }
}

std::vector<Ref<DeviceValue>> Program::wrap_outputs(const std::vector<PJRT_Buffer*>& raw, int device,
                                                    const Ref<RunOutcome>& outcome) {
  const pjrt::Api api = Runtime::get().client().api();
  std::call_once(measured_, [&] { measure_outputs(raw); });
  std::vector<Ref<DeviceValue>> values;
  values.reserve(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    std::vector<pjrt::Buffer> buffers;
    buffers.reserve(num_devices_);
    for (size_t d = 0; d < num_devices_; ++d) buffers.emplace_back(api, raw[d * outputs_.size() + i]);
    values.push_back(
        make_ref<DeviceValue>(outputs_[i], device, std::move(buffers), output_sizes_bytes_[i], record_, outcome));
  }
  DeviceMemory::of(device).note_transient(record_->temp_bytes);
  return values;
}

Ref<Program> compile_program(ProgramSpec spec) {
  static Metric& compile_time = metric("CompileTime");
  Runtime& runtime = Runtime::get();
  const TimelineSpan span(TimelineEvent::Kind::kCompile);
  const Clock::time_point start = Clock::now();
  pjrt::Executable executable = runtime.client().compile(spec.stablehlo, make_options(spec, runtime));
  const double seconds = seconds_since(start);
  compile_time.record(seconds);
  runtime.return_compiler_memory(seconds);
  return make_ref<Program>(std::move(spec), std::move(executable), seconds, false);
}

std::string serialized_options(const ProgramSpec& spec) { return make_options(spec, Runtime::get()).serialize(); }

Ref<Program> load_program(ProgramSpec spec, std::string_view serialized) {
  const Clock::time_point start = Clock::now();
  Runtime& runtime = Runtime::get();
  pjrt::Executable executable = runtime.client().deserialize(serialized);
  const double seconds = seconds_since(start);
  runtime.return_compiler_memory(seconds);
  return make_ref<Program>(std::move(spec), std::move(executable), seconds, true);
}

}  // namespace torch_pjrt
