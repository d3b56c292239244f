#include "pjrt/executable.h"

#include <memory>
#include <utility>

namespace torch_pjrt::pjrt {

Executable::Executable(Api api, PJRT_LoadedExecutable* loaded) : Executable(api) {
  loaded_ = loaded;
  PJRT_LoadedExecutable_GetExecutable_Args get{};
  get.loaded_executable = loaded_;
  api_.call(TP_PJRT(PJRT_LoadedExecutable_GetExecutable), get);
  executable_ = get.executable;
  PJRT_Executable_Name_Args name{};
  name.executable = executable_;
  api_.call(TP_PJRT(PJRT_Executable_Name), name);
  name_.assign(name.executable_name, name.executable_name_size);
  PJRT_Executable_NumOutputs_Args outputs{};
  outputs.executable = executable_;
  api_.call(TP_PJRT(PJRT_Executable_NumOutputs), outputs);
  num_outputs_ = outputs.num_outputs;
}

Executable::Executable(Executable&& other) noexcept
    : api_(other.api_),
      loaded_(std::exchange(other.loaded_, nullptr)),
      executable_(std::exchange(other.executable_, nullptr)),
      name_(std::move(other.name_)),
      num_outputs_(other.num_outputs_) {}

Executable::~Executable() {
  if (executable_ != nullptr) {
    PJRT_Executable_Destroy_Args args{};
    args.executable = executable_;
    api_.call_quietly(TP_PJRT(PJRT_Executable_Destroy), args);
  }
  if (loaded_ != nullptr) {
    PJRT_LoadedExecutable_Destroy_Args args{};
    args.executable = loaded_;
    api_.call_quietly(TP_PJRT(PJRT_LoadedExecutable_Destroy), args);
  }
}

std::vector<Device> Executable::devices() const {
  PJRT_LoadedExecutable_AddressableDevices_Args args{};
  args.executable = loaded_;
  api_.call(TP_PJRT(PJRT_LoadedExecutable_AddressableDevices), args);
  std::vector<Device> devices;
  for (size_t i = 0; i < args.num_addressable_devices; ++i) devices.emplace_back(api_, args.addressable_devices[i]);
  return devices;
}

std::vector<TensorType> Executable::output_types() const {
  PJRT_Executable_OutputElementTypes_Args elements{};
  elements.executable = executable_;
  api_.call(TP_PJRT(PJRT_Executable_OutputElementTypes), elements);
  PJRT_Executable_OutputDimensions_Args shapes{};
  shapes.executable = executable_;
  api_.call(TP_PJRT(PJRT_Executable_OutputDimensions), shapes);
  std::vector<TensorType> types;
  const int64_t* dims = shapes.dims;
  for (size_t i = 0; i < elements.num_output_types; ++i) {
    types.push_back({from_pjrt(elements.output_types[i]), Dims(dims, dims + shapes.dim_sizes[i])});
    dims += shapes.dim_sizes[i];
  }
  return types;
}

void Executable::execute(const Launch& launch, PJRT_Buffer** const* outputs, PJRT_Event** done) const {
  PJRT_ExecuteOptions options{};
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  options.non_donatable_input_indices = launch.non_donatable_input_indices.data();
  options.num_non_donatable_input_indices = launch.non_donatable_input_indices.size();
  PJRT_LoadedExecutable_Execute_Args args{};
  args.executable = loaded_;
  args.options = &options;
  args.argument_lists = launch.argument_lists.data();
  args.num_devices = launch.argument_lists.size();
  args.num_args = launch.num_arguments;
  args.output_lists = outputs;
  args.device_complete_events = done;
  args.execute_device = launch.execute_device;
  api_.call(TP_PJRT(PJRT_LoadedExecutable_Execute), args);
}

std::vector<Buffer> Executable::execute(std::span<const Buffer* const> arguments, const Device* execute_device,
                                        Event* done, std::span<const int64_t> non_donatable_input_indices) const {
  std::vector<PJRT_Buffer*> inputs;
  for (const Buffer* argument : arguments) inputs.push_back(argument->raw());
  PJRT_Buffer* const* const argument_list = inputs.data();
  std::vector<PJRT_Buffer*> outputs(num_outputs_);
  PJRT_Buffer** const output_list = outputs.data();
  PJRT_Event* event = nullptr;
  Launch launch;
  launch.argument_lists = {&argument_list, 1};
  launch.num_arguments = inputs.size();
  launch.non_donatable_input_indices = non_donatable_input_indices;
  launch.execute_device = execute_device == nullptr ? nullptr : execute_device->raw();
  execute(launch, &output_list, done == nullptr ? nullptr : &event);
  if (done != nullptr) *done = Event(api_, event);
  std::vector<Buffer> results;
  results.reserve(outputs.size());
  for (PJRT_Buffer* output : outputs) results.emplace_back(api_, output);
  return results;
}

std::string Executable::serialize() const {
  PJRT_Executable_Serialize_Args args{};
  args.executable = executable_;
  api_.call(TP_PJRT(PJRT_Executable_Serialize), args);
  const std::unique_ptr<PJRT_SerializedExecutable, void (*)(PJRT_SerializedExecutable*)> owner(
      args.serialized_executable, args.serialized_executable_deleter);
  return std::string(args.serialized_bytes, args.serialized_bytes_size);
}

Executable::OptimizedProgram Executable::optimized_program() const {
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  PJRT_Executable_OptimizedProgram_Args args{};
  args.executable = executable_;
  args.program = &program;
  // With a null `code` the first call only fills in code_size.
  api_.call(TP_PJRT(PJRT_Executable_OptimizedProgram), args);
  OptimizedProgram result;
  result.code.resize(program.code_size);
  program.code = result.code.data();
  api_.call(TP_PJRT(PJRT_Executable_OptimizedProgram), args);
  result.format.assign(program.format, program.format_size);
  return result;
}

std::optional<CompiledMemoryStats> Executable::memory_stats() const {
  PJRT_Executable_GetCompiledMemoryStats_Args args{};
  args.executable = executable_;
  try {
    api_.call(TP_PJRT(PJRT_Executable_GetCompiledMemoryStats), args);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnimplemented) return std::nullopt;
    throw;
  }
  return CompiledMemoryStats{args.generated_code_size_in_bytes, args.argument_size_in_bytes, args.output_size_in_bytes,
                             args.alias_size_in_bytes, args.temp_size_in_bytes};
}

NamedValues Executable::cost_analysis() const {
  PJRT_Executable_GetCostAnalysis_Args args{};
  args.executable = executable_;
  try {
    api_.call(TP_PJRT(PJRT_Executable_GetCostAnalysis), args);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnimplemented) return {};
    throw;
  }
  return from_pjrt(args.properties, args.num_properties);
}

}  // namespace torch_pjrt::pjrt
