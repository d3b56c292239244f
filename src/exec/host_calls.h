// The handler behind custom calls that run ATen kernels (ops/host_call.h). It needs libtorch, so src/torch brings it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "pjrt/client.h"

namespace torch_pjrt {

struct HostCallHandler {
  // An XLA_FFI_Handler*.
  void* handler = nullptr;
  // Whether the plugin has asked the handler for its version, and so has accepted it.
  bool (*is_accepted)() = nullptr;
};

// Before the runtime starts.
void set_host_call_handler(HostCallHandler handler);

// Registers the handler with a CPU plugin; false when there is none, or the plugin does not take it. Programs then use
// StableHLO alone.
bool register_host_calls(const pjrt::Client& client);

// What a host call raised, as text that passes through the plugin: `words` are eager PyTorch's, `op` names the operator
// for the reader, and may be empty.
std::string to_plugin_message(ErrorCode code, std::string_view words, std::string_view op);
// The error that to_plugin_message made the text of; `error` itself when it is another one.
Error from_plugin_message(const Error& error);

}  // namespace torch_pjrt
