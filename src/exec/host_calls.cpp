#include "exec/host_calls.h"

#include <charconv>

#include "exec/statistics.h"
#include "ops/host_call.h"
#include "pjrt/ffi.h"

namespace torch_pjrt {
namespace {

HostCallHandler g_handler;

constexpr std::string_view kErrorMark = "[host call error ";

}  // namespace

void set_host_call_handler(HostCallHandler handler) { g_handler = handler; }

bool register_host_calls(const pjrt::Client& client) {
  if (g_handler.handler == nullptr) return false;
  if (pjrt::has_ffi(client.api())) {
    try {
      pjrt::register_ffi_handler(client.api(), kHostCallTarget, "HOST", g_handler.handler);
      if (g_handler.is_accepted()) return true;
    } catch (const Error&) {
      // The plugin's FFI is of another version.
    }
  }
  counter("HostKernelsUnavailable").add();
  return false;
}

// "[host call error CODE] WORDS (in OP)"
std::string to_plugin_message(ErrorCode code, std::string_view words, std::string_view op) {
  std::string text = concat(kErrorMark, static_cast<int>(code), "] ", words);
  if (!op.empty()) text += concat(" (in ", op, ")");
  return text;
}

Error from_plugin_message(const Error& error) {
  const std::string_view text = error.what();
  const size_t mark = text.find(kErrorMark);
  if (mark == std::string_view::npos) return error;
  const std::string_view rest = text.substr(mark + kErrorMark.size());
  int code = 0;
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), code);
  constexpr std::string_view kClosing = "] ";
  const std::string_view words = rest.substr(static_cast<size_t>(end - rest.data()));
  if (failure != std::errc() || !words.starts_with(kClosing)) return error;
  return Error(static_cast<ErrorCode>(code), std::string(words.substr(kClosing.size())));
}

}  // namespace torch_pjrt
