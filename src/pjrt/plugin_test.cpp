// Finding and refusing plugins; needs none.
#include "pjrt/plugin.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "pjrt/compile_options.h"
#include "pjrt/discovery.h"

namespace torch_pjrt::pjrt {
namespace {

class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~ScopedVariable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

Error load_error(const std::string& path) {
  try {
    Plugin::load(path);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "loaded");
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(Plugin, refuses_a_missing_file) {
  const Error error = load_error("/no/such/plugin.so");
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_STREQ(error.what(), "PJRT plugin /no/such/plugin.so: no such file");
}

TEST(Plugin, refuses_a_corrupt_library) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "torch_pjrt_corrupt_plugin.so";
  std::ofstream(path) << "\x7f" << "ELF, but not really";
  const Error error = load_error(path);
  std::filesystem::remove(path);
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  expect_contains(error.what(), "cannot be loaded");
}

TEST(Plugin, refuses_a_library_without_the_entry_point) {
  const Error error = load_error(TORCH_PJRT_TEST_PLUGIN_WITHOUT_API);
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  expect_contains(error.what(), "does not define GetPjrtApi");
}

TEST(Plugin, refuses_an_old_api) {
  const Error error = load_error(TORCH_PJRT_TEST_PLUGIN_OLD);
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  expect_contains(error.what(), "it is too old: it speaks PJRT API 0.3");
}

TEST(Plugin, a_failed_load_can_be_repeated) {
  EXPECT_STREQ(load_error(TORCH_PJRT_TEST_PLUGIN_OLD).what(), load_error(TORCH_PJRT_TEST_PLUGIN_OLD).what());
}

TEST(Discovery, says_what_it_looked_for) {
  const ScopedVariable path("PJRT_PLUGIN_LIBRARY_PATH", nullptr);
  const ScopedVariable device("PJRT_DEVICE", "no_such_device");
  try {
    find_plugins();
    FAIL() << "found one";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    expect_contains(error.what(), "PJRT_PLUGIN_LIBRARY_PATH is not set");
    expect_contains(error.what(), "PJRT_DEVICE is no_such_device");
    expect_contains(error.what(), "pip install");
  }
}

TEST(Discovery, the_path_in_the_environment_stands_alone) {
  const ScopedVariable path("PJRT_PLUGIN_LIBRARY_PATH", "/some/xla_cpu_pjrt.so");
  const ScopedVariable device("PJRT_DEVICE", nullptr);
  const std::vector<PluginCandidate> found = find_plugins();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].library_path, "/some/xla_cpu_pjrt.so");
  EXPECT_TRUE(is_cpu(found[0]));
  EXPECT_FALSE(is_cpu({"xla_cuda_plugin.so", "/some/xla_cuda_plugin.so"}));
}

TEST(Discovery, device_names_select_registered_plugins) {
  register_plugin_path("test_cpu_plugin", "/first_cpu.so");
  register_plugin_path("xla_cuda13", "/cuda13.so");
  register_plugin_path("test_cpu_plugin", "/second_cpu.so");
  const ScopedVariable path("PJRT_PLUGIN_LIBRARY_PATH", nullptr);
  const auto paths = [](const char* device) {
    const ScopedVariable variable("PJRT_DEVICE", device);
    std::vector<std::string> result;
    for (const PluginCandidate& candidate : find_plugins()) result.push_back(candidate.library_path);
    return result;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(paths("CUDA"), Paths{"/cuda13.so"});
  EXPECT_EQ(paths("gpu"), Paths{"/cuda13.so"});
  EXPECT_EQ(paths("Test_CPU_plugin"), (Paths{"/first_cpu.so", "/second_cpu.so"}));
  // Without a wish, accelerators come first.
  EXPECT_EQ(paths(nullptr).front(), "/cuda13.so");
}

TEST(CompileOptions, serialize_as_protobuf) {
  CompileOptions options;
  // field 3 { field 1: -1, field 4: 1, field 5: 1 }
  EXPECT_EQ(options.serialize(),
            std::string("\x1a\x0f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01\x28\x01", 17));
  options.overrides.emplace_back("f", true);
  // field 7 { key "f", value { field 2: true } }
  EXPECT_TRUE(
      options.serialize().ends_with(std::string("\x3a\x07\x0a\x01"
                                                "f"
                                                "\x12\x02\x10\x01",
                                                9)));
  options.device_assignment = {0, 1};
  EXPECT_THROW(options.serialize(), Error);
}

}  // namespace
}  // namespace torch_pjrt::pjrt
