#include "pjrt/compile_options.h"

#include <bit>
#include <string_view>
#include <type_traits>

#include "base/error.h"

// Field numbers, from xla/pjrt/proto/compile_options.proto:
//   CompileOptionsProto
//     ExecutableBuildOptionsProto executable_build_options = 3
//     bool compile_portable_executable = 4
//     map<string, OptionOverrideProto> env_option_overrides = 7
//   ExecutableBuildOptionsProto
//     int64 device_ordinal = 1
//     int64 num_replicas = 4
//     int64 num_partitions = 5
//     bool use_spmd_partitioning = 6
//     DeviceAssignmentProto device_assignment = 9
//     bool use_shardy_partitioner = 19
//   DeviceAssignmentProto
//     int32 replica_count = 1
//     int32 computation_count = 2
//     repeated ComputationDevice computation_devices = 3, one for each partition
//   ComputationDevice
//     repeated int64 replica_device_ids = 1
//   OptionOverrideProto
//     oneof { string string_field = 1, bool bool_field = 2, int64 int_field = 3, double double_field = 4 }
// A map is a repeated message { key = 1, value = 2 }.
namespace torch_pjrt::pjrt {
namespace {

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

class ProtoWriter {
 public:
  void field(uint64_t number, int64_t value) {
    tag(number, kVarint);
    varint(static_cast<uint64_t>(value));
  }
  void field(uint64_t number, bool value) { field(number, static_cast<int64_t>(value)); }
  void field(uint64_t number, double value) {
    tag(number, kFixed64);
    auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8) bytes_ += static_cast<char>(bits & 0xff);
  }
  void field(uint64_t number, std::string_view value) {
    tag(number, kLengthDelimited);
    varint(value.size());
    bytes_ += value;
  }
  std::string take() { return std::move(bytes_); }

 private:
  void tag(uint64_t number, WireType type) { varint(number << 3 | type); }
  void varint(uint64_t value) {
    for (; value > 0x7f; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

std::string serialize_override(const OptionOverride& override_) {
  ProtoWriter value;
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        constexpr uint64_t kNumber = std::is_same_v<T, std::string> ? 1
                                     : std::is_same_v<T, bool>      ? 2
                                     : std::is_same_v<T, int64_t>   ? 3
                                                                    : 4;
        value.field(kNumber, v);
      },
      override_.second);
  ProtoWriter entry;
  entry.field(1, std::string_view(override_.first));
  entry.field(2, std::string_view(value.take()));
  return entry.take();
}

std::string serialize_assignment(const CompileOptions& options) {
  ProtoWriter assignment;
  assignment.field(1, options.num_replicas);
  assignment.field(2, options.num_partitions);
  for (int64_t partition = 0; partition < options.num_partitions; ++partition) {
    ProtoWriter devices;
    for (int64_t replica = 0; replica < options.num_replicas; ++replica) {
      devices.field(1, options.device_assignment[static_cast<size_t>(partition * options.num_replicas + replica)]);
    }
    assignment.field(3, std::string_view(devices.take()));
  }
  return assignment.take();
}

}  // namespace

std::string CompileOptions::serialize() const {
  TP_CHECK(device_assignment.empty() || static_cast<int64_t>(device_assignment.size()) == num_replicas * num_partitions,
           "device assignment of ", device_assignment.size(), " devices");
  ProtoWriter build;
  // XLA's "no device chosen"; left out it would mean device 0.
  build.field(1, int64_t{-1});
  build.field(4, num_replicas);
  build.field(5, num_partitions);
  if (use_spmd_partitioning) build.field(6, true);
  if (!device_assignment.empty()) build.field(9, std::string_view(serialize_assignment(*this)));
  if (use_shardy_partitioner) build.field(19, true);
  ProtoWriter options;
  options.field(3, std::string_view(build.take()));
  if (portable) options.field(4, true);
  for (const OptionOverride& override_ : overrides) options.field(7, std::string_view(serialize_override(override_)));
  return options.take();
}

}  // namespace torch_pjrt::pjrt
