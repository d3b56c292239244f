#include "pjrt/error.h"

#include <string>

namespace torch_pjrt::pjrt {
namespace {

std::string message_of(const PJRT_Api& table, PJRT_Error* error) {
  PJRT_Error_Message_Args args{};
  args.struct_size = PJRT_Error_Message_Args_STRUCT_SIZE;
  args.error = error;
  table.PJRT_Error_Message(&args);
  return std::string(args.message, args.message_size);
}

PJRT_Error_Code code_of(const PJRT_Api& table, PJRT_Error* error) {
  PJRT_Error_GetCode_Args args{};
  args.struct_size = PJRT_Error_GetCode_Args_STRUCT_SIZE;
  args.error = error;
  // An error while reading an error: it only loses the code.
  if (PJRT_Error* nested = table.PJRT_Error_GetCode(&args)) {
    PJRT_Error_Destroy_Args destroy{PJRT_Error_Destroy_Args_STRUCT_SIZE, nullptr, nested};
    table.PJRT_Error_Destroy(&destroy);
    return PJRT_Error_Code_UNKNOWN;
  }
  return args.code;
}

}  // namespace

ErrorCode to_error_code(PJRT_Error_Code code) {
  switch (code) {
    case PJRT_Error_Code_INVALID_ARGUMENT:
      return ErrorCode::kInvalidArgument;
    case PJRT_Error_Code_OUT_OF_RANGE:
      return ErrorCode::kIndexError;
    case PJRT_Error_Code_NOT_FOUND:
      return ErrorCode::kNotFound;
    case PJRT_Error_Code_UNIMPLEMENTED:
      return ErrorCode::kUnimplemented;
    case PJRT_Error_Code_ALREADY_EXISTS:
    case PJRT_Error_Code_PERMISSION_DENIED:
    case PJRT_Error_Code_FAILED_PRECONDITION:
    case PJRT_Error_Code_UNAUTHENTICATED:
      return ErrorCode::kFailedPrecondition;
    case PJRT_Error_Code_CANCELLED:
    case PJRT_Error_Code_DEADLINE_EXCEEDED:
    case PJRT_Error_Code_ABORTED:
    case PJRT_Error_Code_UNAVAILABLE:
      return ErrorCode::kUnavailable;
    case PJRT_Error_Code_RESOURCE_EXHAUSTED:
      return ErrorCode::kOutOfMemory;
    default:
      return ErrorCode::kInternal;
  }
}

Error take_error(const PJRT_Api& table, PJRT_Error* error, std::string_view call) {
  Error result(to_error_code(code_of(table, error)), concat(call, ": ", message_of(table, error)));
  PJRT_Error_Destroy_Args destroy{PJRT_Error_Destroy_Args_STRUCT_SIZE, nullptr, error};
  table.PJRT_Error_Destroy(&destroy);
  return result;
}

}  // namespace torch_pjrt::pjrt
