// Environment variables, read in one place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace torch_pjrt {

// The variable's value; nullopt when unset or empty.
std::optional<std::string> env_string(const char* name);
// True for "1", "true", "yes", "on" (any case); `fallback` when unset.
bool env_flag(const char* name, bool fallback);
// Throws kValueError, naming the variable, when it is not an integer.
int64_t env_int(const char* name, int64_t fallback);

}  // namespace torch_pjrt
