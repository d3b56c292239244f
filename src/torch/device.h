// The current device and the default generators of the `xla` device type.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <utility>

namespace torch_pjrt {

// Thread-local device that "xla" without an index means.
int current_device();
void set_current_device(int device);

// (seed, offset) of a counter-based generator. Both live on the host and are inputs of the recorded programs.
struct RandomCounter {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

// Reserves `count` counters of `generator` (the device's default one when undefined): the returned offset is where they
// begin.
RandomCounter advance(const std::optional<at::Generator>& generator, int device, uint64_t count);
const at::Generator& default_generator(int device);
// Seeds the default generators of all devices.
void manual_seed_all(uint64_t seed);

}  // namespace torch_pjrt
