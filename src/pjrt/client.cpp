#include "pjrt/client.h"

#include <utility>

namespace torch_pjrt::pjrt {
namespace {

PJRT_HostBufferSemantics to_pjrt(HostMemory memory) {
  switch (memory) {
    case HostMemory::kCopyNow:
      return PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    case HostMemory::kUntilTransferred:
      return PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
    case HostMemory::kAliasImmutable:
      return PJRT_HostBufferSemantics_kImmutableZeroCopy;
  }
  TP_CHECK(false, "HostMemory ", static_cast<int>(memory));
}

}  // namespace

Client::Client(const Plugin& plugin, const NamedValues& options) : Client(&plugin) {
  const std::vector<PJRT_NamedValue> create_options = pjrt::to_pjrt(options);
  PJRT_Client_Create_Args create{};
  create.create_options = create_options.data();
  create.num_options = create_options.size();
  api_.call(TP_PJRT(PJRT_Client_Create), create);
  client_ = create.client;

  PJRT_Client_PlatformName_Args name{};
  name.client = client_;
  api_.call(TP_PJRT(PJRT_Client_PlatformName), name);
  platform_name_.assign(name.platform_name, name.platform_name_size);

  PJRT_Client_PlatformVersion_Args version{};
  version.client = client_;
  api_.call(TP_PJRT(PJRT_Client_PlatformVersion), version);
  platform_version_.assign(version.platform_version, version.platform_version_size);

  PJRT_Client_AddressableDevices_Args devices{};
  devices.client = client_;
  api_.call(TP_PJRT(PJRT_Client_AddressableDevices), devices);
  for (size_t i = 0; i < devices.num_addressable_devices; ++i) {
    addressable_devices_.emplace_back(api_, devices.addressable_devices[i]);
  }
}

Client::~Client() {
  if (client_ == nullptr) return;
  PJRT_Client_Destroy_Args args{};
  args.client = client_;
  api_.call_quietly(TP_PJRT(PJRT_Client_Destroy), args);
}

int Client::process_index() const {
  PJRT_Client_ProcessIndex_Args args{};
  args.client = client_;
  api_.call(TP_PJRT(PJRT_Client_ProcessIndex), args);
  return args.process_index;
}

std::vector<Device> Client::devices() const {
  PJRT_Client_Devices_Args args{};
  args.client = client_;
  api_.call(TP_PJRT(PJRT_Client_Devices), args);
  std::vector<Device> devices;
  for (size_t i = 0; i < args.num_devices; ++i) devices.emplace_back(api_, args.devices[i]);
  return devices;
}

Buffer Client::to_device(const void* data, const TensorType& type, const Device& device, HostMemory memory,
                         Event* done_with_host_memory) const {
  static constexpr char kNothing = 0;
  PJRT_Client_BufferFromHostBuffer_Args args{};
  args.client = client_;
  args.data = data == nullptr ? &kNothing : data;
  args.type = pjrt::to_pjrt(type.dtype);
  args.dims = type.dims.data();
  args.num_dims = type.dims.size();
  args.host_buffer_semantics = to_pjrt(memory);
  args.device = device.raw();
  api_.call(TP_PJRT(PJRT_Client_BufferFromHostBuffer), args);
  Event done(api_, args.done_with_host_buffer);
  Buffer buffer(api_, args.buffer);
  if (done_with_host_memory != nullptr) *done_with_host_memory = std::move(done);
  return buffer;
}

Executable Client::compile(std::string_view program, const CompileOptions& options) const {
  static constexpr std::string_view kFormat = "mlir";
  const std::string serialized_options = options.serialize();
  PJRT_Program source{};
  source.struct_size = PJRT_Program_STRUCT_SIZE;
  // The field is not const because the same struct returns programs; compiling only reads it.
  source.code = const_cast<char*>(program.data());
  source.code_size = program.size();
  source.format = kFormat.data();
  source.format_size = kFormat.size();
  PJRT_Client_Compile_Args args{};
  args.client = client_;
  args.program = &source;
  args.compile_options = serialized_options.data();
  args.compile_options_size = serialized_options.size();
  api_.call(TP_PJRT(PJRT_Client_Compile), args);
  return Executable(api_, args.executable);
}

Executable Client::deserialize(std::string_view serialized) const {
  PJRT_Executable_DeserializeAndLoad_Args args{};
  args.client = client_;
  args.serialized_executable = serialized.data();
  args.serialized_executable_size = serialized.size();
  api_.call(TP_PJRT(PJRT_Executable_DeserializeAndLoad), args);
  return Executable(api_, args.loaded_executable);
}

}  // namespace torch_pjrt::pjrt
