#include "base/error.h"

namespace torch_pjrt {

void throw_internal(const char* file, int line, const char* condition, const std::string& message) {
  throw Error(ErrorCode::kInternal,
              concat("internal error at ", file, ":", line, ": ", condition, message.empty() ? "" : ": ", message));
}

}  // namespace torch_pjrt
