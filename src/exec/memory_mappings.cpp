#include "exec/memory_mappings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "base/env.h"

namespace torch_pjrt {
namespace {

// More than any program that was seen: XLA's CPU compiler splits a module into at most 32 parts by default, and takes
// some mappings for each part and each kernel that it compiles apart.
constexpr int64_t kMappingsOfLargeProgram = 512;

}  // namespace

int64_t max_memory_mappings() {
  int64_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  return env_int("XLA_MAX_MEMORY_MAPPINGS", limit);
}

int64_t count_memory_mappings() {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 1 << 16> text{};
  int64_t count = 0;
  for (ssize_t size = 0; (size = read(file, text.data(), text.size())) > 0;) {
    count += std::count(text.begin(), text.begin() + size, '\n');
  }
  close(file);
  return count;
}

void MappingBudget::make_room(size_t min_programs, const std::function<size_t()>& size,
                              const std::function<void(size_t)>& evict) {
  if (limit_ <= 0 || --calls_until_count_ > 0) return;
  const auto most = static_cast<int64_t>(kMostUsed * static_cast<double>(limit_));
  const auto goal = static_cast<int64_t>(kUsedAfterEviction * static_cast<double>(limit_));
  int64_t used = count_();
  if (used > most) {
    // Not all programs map as much, and what is still running goes later.
    while (used > goal && size() > min_programs) {
      const double excess = static_cast<double>(used - goal) / static_cast<double>(used);
      const auto share = static_cast<size_t>(std::ceil(excess * static_cast<double>(size())));
      evict(std::min(share, size() - min_programs));
      used = count_();
    }
  }
  calls_until_count_ = std::max<int64_t>(1, (most - used) / kMappingsOfLargeProgram);
}

}  // namespace torch_pjrt
