// The options of a compilation, encoded as XLA's CompileOptionsProto.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace torch_pjrt::pjrt {

// An XLA flag (a field of xla.DebugOptions, without "--") and its value.
using OptionOverride = std::pair<std::string, std::variant<std::string, bool, int64_t, double>>;

struct CompileOptions {
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  // GSPMD or Shardy partitions the program over num_partitions devices.
  bool use_spmd_partitioning = false;
  bool use_shardy_partitioner = false;
  // Not bound to a device: every execution names the one it runs on. Only with one replica and one partition.
  bool portable = false;
  // Device ids, [num_partitions][num_replicas]; empty leaves the choice to the plugin.
  std::vector<int64_t> device_assignment;
  std::vector<OptionOverride> overrides;

  // CompileOptionsProto, serialized. Equal options give equal bytes.
  std::string serialize() const;
};

}  // namespace torch_pjrt::pjrt
