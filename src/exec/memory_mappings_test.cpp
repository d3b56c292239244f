#include "exec/memory_mappings.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace torch_pjrt {
namespace {

constexpr size_t kMinPrograms = 32;

// A process with other mappings, and programs of equally many each.
struct Process {
  int64_t others = 100;
  int64_t mappings_per_program = 10;
  size_t num_programs = 0;
  int num_counts = 0;
  std::vector<size_t> evictions = {};

  int64_t count() {
    ++num_counts;
    return others + mappings_per_program * static_cast<int64_t>(num_programs);
  }
  void compile(MappingBudget& budget) {
    budget.make_room(
        kMinPrograms, [this] { return num_programs; },
        [this](size_t n) {
          num_programs -= n;
          evictions.push_back(n);
        });
    ++num_programs;
  }
};

TEST(MappingBudget, keeps_programs_within_the_share) {
  Process process;
  MappingBudget budget(10'000, [&] { return process.count(); });
  int64_t most = 0;
  for (int i = 0; i < 5'000; ++i) {
    process.compile(budget);
    most = std::max(most, process.count());
  }
  EXPECT_LE(most, 6'100);
  EXPECT_GE(most, 5'900);
  EXPECT_GE(process.num_programs, 400u);
}

TEST(MappingBudget, counts_seldom) {
  Process process;
  MappingBudget budget(65'530, [&] { return process.count(); });
  for (int i = 0; i < 1'000; ++i) process.compile(budget);
  EXPECT_LE(process.num_counts, 20);
  EXPECT_TRUE(process.evictions.empty());
}

TEST(MappingBudget, leaves_some_programs_where_others_map_the_memory) {
  Process process;
  process.others = 9'000;
  MappingBudget budget(10'000, [&] { return process.count(); });
  for (int i = 0; i < 100; ++i) process.compile(budget);
  EXPECT_EQ(process.num_programs, kMinPrograms + 1);
}

TEST(MappingBudget, bounds_nothing_without_a_limit) {
  Process process;
  MappingBudget budget(0, [&] { return process.count(); });
  for (int i = 0; i < 100; ++i) process.compile(budget);
  EXPECT_EQ(process.num_counts, 0);
}

TEST(MemoryMappings, counts_those_of_the_process) {
  const int64_t before = count_memory_mappings();
  if (before == 0) GTEST_SKIP() << "the system does not tell";
  const auto page = static_cast<size_t>(getpagesize());
  // Neighbours with equal rights would be one mapping.
  void* pages = mmap(nullptr, 21 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  for (size_t i = 1; i < 21; i += 2) mprotect(static_cast<char*>(pages) + i * page, page, PROT_NONE);
  EXPECT_NEAR(static_cast<double>(count_memory_mappings() - before), 20, 2);
  munmap(pages, 21 * page);
}

}  // namespace
}  // namespace torch_pjrt
