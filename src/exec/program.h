// A compiled program with explicit parameters and outputs.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "exec/device_value.h"
#include "exec/program_registry.h"
#include "pjrt/compile_options.h"
#include "pjrt/executable.h"

namespace torch_pjrt {

// What to compile. The text decides what is computed; the rest must agree with it.
struct ProgramSpec {
  std::string stablehlo;
  std::vector<TensorType> parameters;
  std::vector<TensorType> outputs;
  // Parameters whose buffers a run consumes, as the text's tf.aliasing_output or jax.buffer_donor says; may be shorter
  // than `parameters`.
  std::vector<bool> donated;
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  // Added to, and stronger than, Runtime::default_overrides().
  std::vector<pjrt::OptionOverride> overrides;
  // For the record only.
  std::string cause;
  std::string explanation;
  std::string largest_value;
  int64_t num_nodes = 0;
};

// Thread safe. One device, unless replicas or partitions were asked for; a program for one device runs on any device.
class Program : public RefCounted {
 public:
  Program(ProgramSpec spec, pjrt::Executable executable, double compile_seconds, bool from_disk_cache);

  const std::vector<TensorType>& parameters() const { return parameters_; }
  const std::vector<TensorType>& outputs() const { return outputs_; }
  bool is_donated(size_t parameter) const { return parameter < donated_.size() && donated_[parameter]; }
  const ProgramRecord& record() const { return *record_; }
  const pjrt::Executable& executable() const { return executable_; }

  // Starts a run on `device` and returns its outputs, which will exist later; an error of the computation surfaces when
  // one of them, or Runtime::wait_all, is waited for. The buffers of donated arguments are consumed: their values must
  // not be used again. `keep` lists donated parameters whose buffers this one run must not consume. `outcome`, if any,
  // learns how the run ends. Throws when the run cannot start; then every argument is as it was, except what the plugin
  // has consumed already: DeviceValue::check_not_lost then throws that error.
  std::vector<Ref<DeviceValue>> run(std::span<DeviceValue* const> arguments, int device,
                                    std::span<const int64_t> keep = {}, Ref<RunOutcome> outcome = {});
  std::vector<Ref<DeviceValue>> run(std::span<const Ref<DeviceValue>> arguments, int device);

  // For the disk cache; see load_program.
  std::string serialize() const { return executable_.serialize(); }

 private:
  void check_arguments(std::span<DeviceValue* const> arguments, int device) const;
  void check_memory(int device) const;
  void consume(std::span<DeviceValue* const> arguments, std::span<const int64_t> keep) const;
  // After a failure: which donated arguments are gone is the plugin's decision.
  void mark_deleted(std::span<DeviceValue* const> arguments, const Error& error) const;
  std::vector<Ref<DeviceValue>> wrap_outputs(const std::vector<PJRT_Buffer*>& raw, int device,
                                             const Ref<RunOutcome>& outcome);
  void measure_outputs(const std::vector<PJRT_Buffer*>& raw);

  const pjrt::Executable executable_;
  const Ref<ProgramRecord> record_;
  const size_t num_devices_;
  const bool portable_;
  const std::vector<TensorType> parameters_;
  const std::vector<TensorType> outputs_;
  const std::vector<bool> donated_;
  std::once_flag measured_;
  std::vector<size_t> output_sizes_bytes_;
};

// Compiles on the process's client. Throws the compiler's error.
Ref<Program> compile_program(ProgramSpec spec);
// The compile options of `spec`, encoded; equal options give equal bytes.
std::string serialized_options(const ProgramSpec& spec);
// Loads what Program::serialize gave for the same spec and Runtime::fingerprint; `spec.stablehlo` is not read.
Ref<Program> load_program(ProgramSpec spec, std::string_view serialized);

}  // namespace torch_pjrt
