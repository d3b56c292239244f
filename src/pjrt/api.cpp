#include "pjrt/api.h"

#include <cstring>

namespace torch_pjrt::pjrt {
namespace {

// A newer plugin's extension may have a type that our header's enum lacks, so it is read as the integer that it is.
bool has_type(const PJRT_Extension_Base& extension, PJRT_Extension_Type type) {
  return std::memcmp(&extension.type, &type, sizeof type) == 0;
}

}  // namespace

const PJRT_Extension_Base* Api::extension(PJRT_Extension_Type type) const {
  const PJRT_Extension_Base* extension = table_->extension_start;
  while (extension != nullptr && !has_type(*extension, type)) extension = extension->next;
  return extension;
}

void Api::drop(PJRT_Error* error) const noexcept {
  PJRT_Error_Destroy_Args args{PJRT_Error_Destroy_Args_STRUCT_SIZE, nullptr, error};
  table_->PJRT_Error_Destroy(&args);
}

void Api::throw_missing(const char* name) const {
  throw_error(ErrorCode::kUnimplemented, name, ": the plugin (PJRT API ", major_version(), ".", minor_version(),
              ") does not provide it");
}

}  // namespace torch_pjrt::pjrt
