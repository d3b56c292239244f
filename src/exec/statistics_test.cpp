#include "exec/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace torch_pjrt {
namespace {

class Statistics : public testing::Test {
 protected:
  void SetUp() override {
    clear_counters();
    clear_metrics();
  }
};

TEST_F(Statistics, a_name_has_one_counter) {
  Counter& first = counter("test_one_counter");
  first.add();
  counter("test_one_counter").add(4);
  EXPECT_EQ(&first, &counter("test_one_counter"));
  EXPECT_EQ(first.value(), 5);
}

TEST_F(Statistics, counters_lose_nothing_between_threads) {
  Counter& shared = counter("test_threads");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10000; ++i) shared.add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared.value(), 40000);
}

TEST_F(Statistics, lists_only_what_counted) {
  counter("test_silent");
  Counter& loud = counter("test_loud");
  loud.add();
  const auto names_of = [] {
    std::vector<std::string> names;
    for (const auto& [name, value] : list_counters()) names.push_back(name);
    return names;
  };
  const auto contains = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_TRUE(contains(names_of(), "test_loud"));
  EXPECT_FALSE(contains(names_of(), "test_silent"));
  clear_counters();
  EXPECT_FALSE(contains(names_of(), "test_loud"));
  loud.add(2);
  EXPECT_EQ(counter("test_loud").value(), 2);
}

TEST_F(Statistics, metrics_keep_totals_and_the_newest_samples) {
  Metric& bytes = metric("test_bytes", Unit::kBytes);
  constexpr int64_t kCount = 3000;
  for (int64_t i = 1; i <= kCount; ++i) bytes.record(static_cast<double>(i));
  const Metric::Snapshot snapshot = bytes.snapshot();
  EXPECT_EQ(bytes.unit(), Unit::kBytes);
  EXPECT_EQ(snapshot.total_samples, kCount);
  EXPECT_EQ(snapshot.accumulator, kCount * (kCount + 1) / 2.0);
  ASSERT_EQ(snapshot.samples.size(), Metric::kMaxSamples);
  EXPECT_EQ(snapshot.samples.front().value, kCount - 1023);
  EXPECT_EQ(snapshot.samples.back().value, kCount);
}

TEST_F(Statistics, percentiles_by_nearest_rank) {
  Metric& values = metric("test_percentiles", Unit::kNumber);
  EXPECT_EQ(values.snapshot().percentile(0.5), 0);
  for (int i = 100; i >= 1; --i) values.record(i);
  const Metric::Snapshot snapshot = values.snapshot();
  EXPECT_EQ(snapshot.percentile(0.01), 1);
  EXPECT_EQ(snapshot.percentile(0.5), 50);
  EXPECT_EQ(snapshot.percentile(0.99), 99);
  EXPECT_EQ(snapshot.percentile(1), 100);
  EXPECT_EQ(snapshot.percentile(0), 1);
}

TEST_F(Statistics, cleared_metrics_start_again) {
  Metric& time = metric("test_cleared");
  time.record(1.5);
  clear_metrics();
  EXPECT_EQ(time.snapshot().total_samples, 0);
  EXPECT_EQ(time.snapshot().accumulator, 0);
  time.record(2.5);
  EXPECT_EQ(metric("test_cleared").snapshot().accumulator, 2.5);
}

}  // namespace
}  // namespace torch_pjrt
