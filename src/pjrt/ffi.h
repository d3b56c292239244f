// Registers functions that compiled programs call (XLA's foreign function interface, through PJRT's FFI extension).
#pragma once

#include <string_view>

#include "pjrt/api.h"

namespace torch_pjrt::pjrt {

// True when the plugin lets custom calls be registered.
bool has_ffi(const Api& api);

// Makes `stablehlo.custom_call @target` with `api_version = 4` run `handler`, an XLA_FFI_Handler*. `platform` is "HOST"
// for XLA CPU, "CUDA", ... Process wide for the plugin, and for good. Throws kUnimplemented without the extension. A
// handler built for a newer FFI version than the plugin's may be accepted here and refused when a program is compiled.
void register_ffi_handler(const Api& api, std::string_view target, std::string_view platform, void* handler);

}  // namespace torch_pjrt::pjrt
