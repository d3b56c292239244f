#include "exec/host_calls.h"

#include "exec/statistics.h"
#include "ops/host_call.h"
#include "pjrt/ffi.h"

namespace torch_pjrt {
namespace {

HostCallHandler g_handler;

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

}  // namespace torch_pjrt
