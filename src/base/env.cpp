#include "base/env.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace torch_pjrt {

std::optional<std::string> env_string(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

bool env_flag(const char* name, bool fallback) {
  auto value = env_string(name);
  if (!value) return fallback;
  std::transform(value->begin(), value->end(), value->begin(), [](unsigned char c) { return std::tolower(c); });
  return *value == "1" || *value == "true" || *value == "yes" || *value == "on";
}

int64_t env_int(const char* name, int64_t fallback) {
  const auto value = env_string(name);
  if (!value) return fallback;
  int64_t number = 0;
  const auto [end, code] = std::from_chars(value->data(), value->data() + value->size(), number);
  TP_USER_CHECK(code == std::errc() && end == value->data() + value->size(), kValueError, name,
                ": expected an integer, got '", *value, "'");
  return number;
}

}  // namespace torch_pjrt
