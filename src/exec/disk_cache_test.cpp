#include "exec/disk_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

namespace torch_pjrt {
namespace {

namespace fs = std::filesystem;

Hash128 key_of(int number) {
  Hash128 key;
  key.mix(number);
  return key;
}

class DiskCacheUse : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "disk_cache_XXXXXX").native();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    directory_ = root_ / "below" / "it";
  }
  void TearDown() override { fs::remove_all(root_); }

  DiskCache open(int64_t max_bytes = 1 << 20, bool is_readonly = false) const {
    return DiskCache({directory_, is_readonly, max_bytes});
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> result;
    for (const auto& file : fs::directory_iterator(directory_)) result.push_back(file.path());
    return result;
  }

  fs::path root_, directory_;
};

TEST_F(DiskCacheUse, gives_back_what_another_process_stored) {
  const std::string program("some\0bytes", 10);
  EXPECT_EQ(open().load(key_of(1)), std::nullopt);
  EXPECT_EQ(open().store(key_of(1), program), "");
  EXPECT_EQ(open().load(key_of(1)), program);
  EXPECT_EQ(open().load(key_of(2)), std::nullopt);
  EXPECT_EQ(open().store(key_of(1), "other"), "");
  EXPECT_EQ(open().load(key_of(1)), "other");
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(DiskCacheUse, damaged_entries_are_deleted) {
  const std::string program(1000, 'x');
  const auto damage = [&](auto&& change) {
    ASSERT_EQ(open().store(key_of(1), program), "");
    ASSERT_EQ(files().size(), 1u);
    change(files()[0]);
    EXPECT_EQ(open().load(key_of(1)), std::nullopt);
    EXPECT_TRUE(files().empty());
  };
  damage([](const fs::path& file) { fs::resize_file(file, 500); });
  damage([](const fs::path& file) { fs::resize_file(file, 0); });
  damage([](const fs::path& file) { std::ofstream(file, std::ios::app) << "y"; });
  damage([](const fs::path& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(700);
    stream.put('y');
  });
}

TEST_F(DiskCacheUse, an_entry_under_another_name_is_damaged) {
  ASSERT_EQ(open().store(key_of(1), "program"), "");
  const fs::path first = files()[0];
  ASSERT_EQ(open().store(key_of(2), "other"), "");
  for (const fs::path& file : files()) {
    if (file != first) fs::copy_file(first, file, fs::copy_options::overwrite_existing);
  }
  EXPECT_EQ(open().load(key_of(2)), std::nullopt);
  EXPECT_EQ(open().load(key_of(1)), "program");
}

TEST_F(DiskCacheUse, drops_what_was_unused_for_longest) {
  DiskCache cache = open(10'000);
  const std::string program(1900, 'x');
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(cache.store(key_of(i), program), "");
    for (const fs::path& file : files()) {
      if (fs::last_write_time(file) > now - std::chrono::minutes(1)) {
        fs::last_write_time(file, now - std::chrono::hours(10 - i));
      }
    }
  }
  ASSERT_EQ(files().size(), 5u);
  EXPECT_EQ(cache.load(key_of(0)), program);
  ASSERT_EQ(cache.store(key_of(5), program), "");
  EXPECT_EQ(cache.load(key_of(0)), program);
  EXPECT_EQ(cache.load(key_of(1)), std::nullopt);
  EXPECT_EQ(cache.load(key_of(5)), program);
  EXPECT_EQ(cache.store(key_of(6), std::string(20'000, 'x')), "");
  EXPECT_EQ(cache.load(key_of(6)), std::nullopt);
}

TEST_F(DiskCacheUse, readonly_changes_nothing) {
  EXPECT_EQ(open(1 << 20, true).store(key_of(1), "program"), "");
  EXPECT_FALSE(fs::exists(directory_));
  ASSERT_EQ(open().store(key_of(1), "program"), "");
  EXPECT_EQ(open(1 << 20, true).load(key_of(1)), "program");
  fs::resize_file(files()[0], 8);
  EXPECT_EQ(open(1 << 20, true).load(key_of(1)), std::nullopt);
  open(1 << 20, true).remove(key_of(1));
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(DiskCacheUse, a_failure_is_told) {
  std::ofstream(root_ / "below") << "a file";
  EXPECT_NE(open().store(key_of(1), "program"), "");
  EXPECT_EQ(open().load(key_of(1)), std::nullopt);
}

TEST_F(DiskCacheUse, several_writers_leave_whole_entries) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      DiskCache cache = open();
      for (int i = 0; i < 50; ++i) {
        cache.store(key_of(i % 5), std::string(1000 + static_cast<size_t>(t), 'x'));
        const auto program = cache.load(key_of(i % 5));
        EXPECT_TRUE(program && program->size() >= 1000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files().size(), 5u);
}

}  // namespace
}  // namespace torch_pjrt
