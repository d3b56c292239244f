#include "torch/errors.h"

namespace torch_pjrt {

void rethrow_as_c10(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kIndexError:
      TORCH_CHECK_INDEX(false, error.what());
    case ErrorCode::kTypeError:
      TORCH_CHECK_TYPE(false, error.what());
    case ErrorCode::kValueError:
      TORCH_CHECK_VALUE(false, error.what());
    case ErrorCode::kUnimplemented:
      TORCH_CHECK_NOT_IMPLEMENTED(false, error.what());
    case ErrorCode::kOutOfMemory:
      TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
    case ErrorCode::kLinAlgError:
      TORCH_CHECK_WITH(LinAlgError, false, error.what());
    default:
      TORCH_CHECK(false, error.what());
  }
}

}  // namespace torch_pjrt
