#include "pjrt/device.h"

namespace torch_pjrt::pjrt {

PJRT_DeviceDescription* Device::description() const {
  PJRT_Device_GetDescription_Args args{};
  args.device = device_;
  api_.call(TP_PJRT(PJRT_Device_GetDescription), args);
  return args.device_description;
}

int Device::id() const {
  PJRT_DeviceDescription_Id_Args args{};
  args.device_description = description();
  api_.call(TP_PJRT(PJRT_DeviceDescription_Id), args);
  return args.id;
}

int Device::process_index() const {
  PJRT_DeviceDescription_ProcessIndex_Args args{};
  args.device_description = description();
  api_.call(TP_PJRT(PJRT_DeviceDescription_ProcessIndex), args);
  return args.process_index;
}

bool Device::is_addressable() const {
  PJRT_Device_IsAddressable_Args args{};
  args.device = device_;
  api_.call(TP_PJRT(PJRT_Device_IsAddressable), args);
  return args.is_addressable;
}

std::string Device::kind() const {
  PJRT_DeviceDescription_Kind_Args args{};
  args.device_description = description();
  api_.call(TP_PJRT(PJRT_DeviceDescription_Kind), args);
  return std::string(args.device_kind, args.device_kind_size);
}

std::string Device::debug_string() const {
  PJRT_DeviceDescription_DebugString_Args args{};
  args.device_description = description();
  api_.call(TP_PJRT(PJRT_DeviceDescription_DebugString), args);
  return std::string(args.debug_string, args.debug_string_size);
}

NamedValues Device::attributes() const {
  PJRT_DeviceDescription_Attributes_Args args{};
  args.device_description = description();
  api_.call(TP_PJRT(PJRT_DeviceDescription_Attributes), args);
  return from_pjrt(args.attributes, args.num_attributes);
}

std::optional<DeviceMemoryStats> Device::memory_stats() const {
  PJRT_Device_MemoryStats_Args args{};
  args.device = device_;
  try {
    api_.call(TP_PJRT(PJRT_Device_MemoryStats), args);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnimplemented) return std::nullopt;
    throw;
  }
  DeviceMemoryStats stats;
  stats.bytes_in_use = args.bytes_in_use;
  if (args.peak_bytes_in_use_is_set) stats.peak_bytes_in_use = args.peak_bytes_in_use;
  if (args.bytes_limit_is_set) stats.bytes_limit = args.bytes_limit;
  return stats;
}

}  // namespace torch_pjrt::pjrt
