// Every program in tests/golden/stablehlo compiles on every plugin of TORCH_PJRT_TEST_PLUGINS (paths, colon separated):
// the text that the builder emits is in a form that older and newer StableHLO readers take.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/env.h"
#include "base/error.h"
#include "pjrt/client.h"

namespace torch_pjrt::pjrt {
namespace {

std::vector<std::filesystem::path> golden_programs() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(TORCH_PJRT_SOURCE_DIR "/tests/golden/stablehlo")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(GoldenPrograms, compile_on_every_plugin) {
  std::stringstream plugins(env_string("TORCH_PJRT_TEST_PLUGINS").value_or(""));
  size_t num_compiled = 0;
  for (std::string library; std::getline(plugins, library, ':');) {
    if (library.empty()) continue;
    const Client client(Plugin::load(library));
    for (const std::filesystem::path& path : golden_programs()) {
      const std::string text = text_of(path);
      // Targets of custom calls are registered by whoever uses them.
      if (text.find("stablehlo.custom_call") != std::string::npos) continue;
      try {
        client.compile(text, {});
        ++num_compiled;
      } catch (const Error& error) {
        ADD_FAILURE() << path.filename() << " on " << library << ": " << error.what();
      }
    }
  }
  if (num_compiled == 0) GTEST_SKIP() << "TORCH_PJRT_TEST_PLUGINS names no plugin";
}

}  // namespace
}  // namespace torch_pjrt::pjrt
