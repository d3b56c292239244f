// For tests: the process's runtime on a plugin under test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/env.h"
#include "exec/runtime.h"

namespace torch_pjrt {

// Uses PJRT_PLUGIN_LIBRARY_PATH, else the first path of TORCH_PJRT_TEST_PLUGINS, with two devices on XLA CPU. False
// when neither names a plugin.
inline bool has_test_runtime() {
  if (!Runtime::is_started() && !env_string("PJRT_PLUGIN_LIBRARY_PATH")) {
    const std::string paths = env_string("TORCH_PJRT_TEST_PLUGINS").value_or("");
    const std::string first = paths.substr(0, paths.find(':'));
    if (first.empty()) return false;
    setenv("PJRT_PLUGIN_LIBRARY_PATH", first.c_str(), 1);
  }
  setenv("CPU_NUM_DEVICES", "2", 0);
  setenv("XLA_PERSISTENT_CACHE_PATH", "0", 1);
  return true;
}

// Base of the fixtures of tests that run programs. Nothing that a test started is still running in the next one, which
// may count executions.
class RuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_test_runtime()) GTEST_SKIP() << "TORCH_PJRT_TEST_PLUGINS names no plugin";
  }

  void TearDown() override {
    if (!Runtime::is_started()) return;
    Runtime& runtime = Runtime::get();
    for (int device = 0; device < runtime.num_devices(); ++device) runtime.in_flight(device).drain();
  }
};

}  // namespace torch_pjrt
