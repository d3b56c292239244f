// A compiled program, loaded on a client's devices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_type.h"
#include "pjrt/buffer.h"

namespace torch_pjrt::pjrt {

// What the compiler planned, in bytes on one device.
struct CompiledMemoryStats {
  int64_t generated_code_bytes = 0;
  int64_t argument_bytes = 0;
  int64_t output_bytes = 0;
  int64_t alias_bytes = 0;  // part of output_bytes that reuses donated arguments
  int64_t temp_bytes = 0;
};

// One execution on `argument_lists.size()` devices. Everything is read during the call only.
struct Launch {
  // [device][argument]
  std::span<PJRT_Buffer* const* const> argument_lists;
  size_t num_arguments = 0;
  // Arguments to keep although the program was compiled to donate them.
  std::span<const int64_t> non_donatable_input_indices;
  // The device to run on; only, and always, for a portable executable.
  PJRT_Device* execute_device = nullptr;
};

// The client must outlive it. Thread safe.
class Executable {
 public:
  // Takes ownership.
  Executable(Api api, PJRT_LoadedExecutable* loaded);
  Executable(Executable&& other) noexcept;
  Executable& operator=(Executable&&) = delete;
  ~Executable();

  const std::string& name() const { return name_; }
  size_t num_outputs() const { return num_outputs_; }
  // The devices it was compiled for; none when portable.
  std::vector<Device> devices() const;
  std::vector<TensorType> output_types() const;

  // Starts the execution and returns at once. Fills outputs[device][0 .. num_outputs), which the caller owns, and,
  // unless `done` is null, done[device] with an event that reports the end and the error. Donated arguments are
  // deleted. Throws when the launch is refused; then nothing was donated.
  void execute(const Launch& launch, PJRT_Buffer** const* outputs, PJRT_Event** done) const;
  // The same on one device, for callers that do not reuse arrays.
  std::vector<Buffer> execute(std::span<const Buffer* const> arguments, const Device* execute_device = nullptr,
                              Event* done = nullptr, std::span<const int64_t> non_donatable_input_indices = {}) const;

  // A form that Client::deserialize takes, on the same platform and plugin version.
  std::string serialize() const;

  struct OptimizedProgram {
    std::string format;  // "hlo": HloModuleProto; "hlo_with_config": HloModuleProtoWithConfig; "mlir"
    std::string code;
  };
  OptimizedProgram optimized_program() const;

  // nullopt when the plugin keeps no such statistics.
  std::optional<CompiledMemoryStats> memory_stats() const;
  // "flops", "bytes accessed", ...; empty when the plugin does not analyse.
  NamedValues cost_analysis() const;

 private:
  // Delegated to, so that the destructor runs when the rest of the public constructor throws.
  explicit Executable(Api api) : api_(api) {}

  Api api_;
  PJRT_LoadedExecutable* loaded_ = nullptr;
  PJRT_Executable* executable_ = nullptr;
  std::string name_;
  size_t num_outputs_ = 0;
};

}  // namespace torch_pjrt::pjrt
