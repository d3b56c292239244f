// Errors below src/torch: one exception class with a code, and two checks (our bug / the caller's fault).
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace torch_pjrt {

// Codes follow absl::StatusCode, which is what PJRT reports. The Python class each becomes is decided in
// src/torch/errors.cpp.
enum class ErrorCode {
  kInvalidArgument,     // RuntimeError, in eager PyTorch's words where it has them
  kIndexError,          // IndexError
  kTypeError,           // TypeError
  kValueError,          // ValueError
  kNotFound,            // RuntimeError
  kUnimplemented,       // a lowering declines: the recorder falls back
  kFailedPrecondition,  // RuntimeError
  kUnavailable,         // RuntimeError
  kOutOfMemory,         // torch.OutOfMemoryError
  kLinAlgError,         // torch.linalg.LinAlgError
  kInternal,            // RuntimeError; our bug
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string message) : std::runtime_error(std::move(message)), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

// Concatenates printable values: concat("rank ", 3, " of ", name).
template <typename... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

[[noreturn]] void throw_internal(const char* file, int line, const char* condition, const std::string& message);

template <typename... Args>
[[noreturn]] void throw_error(ErrorCode code, const Args&... args) {
  throw Error(code, concat(args...));
}

}  // namespace torch_pjrt

// Internal invariant; failing is a bug of this project. Message parts are concatenated.
#define TP_CHECK(condition, ...)                                                                       \
  do {                                                                                                 \
    if (!(condition)) [[unlikely]]                                                                     \
      ::torch_pjrt::throw_internal(__FILE__, __LINE__, #condition, ::torch_pjrt::concat(__VA_ARGS__)); \
  } while (false)

// The caller's fault: `code` is an ErrorCode enumerator without its scope.
#define TP_USER_CHECK(condition, code, ...)                                  \
  do {                                                                       \
    if (!(condition)) [[unlikely]]                                           \
      ::torch_pjrt::throw_error(::torch_pjrt::ErrorCode::code, __VA_ARGS__); \
  } while (false)
