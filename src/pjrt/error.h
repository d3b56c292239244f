// Turns a PJRT error into torch_pjrt::Error; the only place that knows PJRT's error codes.
#pragma once

#include <string_view>

#include "base/error.h"
#include "pjrt_c_api.h"

namespace torch_pjrt::pjrt {

ErrorCode to_error_code(PJRT_Error_Code code);

// Takes ownership of `error`, which is not null. `call` is the PJRT function's name and begins the message.
Error take_error(const PJRT_Api& table, PJRT_Error* error, std::string_view call);

}  // namespace torch_pjrt::pjrt
