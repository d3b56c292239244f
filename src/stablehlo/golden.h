// Test support: compares a module's text with a file under tests/golden/, or rewrites the file when
// TORCH_PJRT_UPDATE_GOLDEN=1. A rewritten file is reviewed as a diff.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/env.h"
#include "base/error.h"

namespace torch_pjrt {

// `name` is relative to tests/golden, without the ending: "stablehlo/convolution".
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(TORCH_PJRT_SOURCE_DIR) / "tests" / "golden" / (name + ".mlir");
  if (env_flag("TORCH_PJRT_UPDATE_GOLDEN", false)) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << "no golden file " << path << "; TORCH_PJRT_UPDATE_GOLDEN=1 writes it";
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << "differs from " << path << "; TORCH_PJRT_UPDATE_GOLDEN=1 rewrites it";
}

// Runs `action`, which must throw an Error with this code and exactly this text.
template <typename Action>
void expect_error(ErrorCode code, const std::string& text, const Action& action) {
  try {
    action();
    ADD_FAILURE() << "expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(std::string(error.what()), text);
  }
}

}  // namespace torch_pjrt
