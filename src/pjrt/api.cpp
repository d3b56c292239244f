#include "pjrt/api.h"

namespace torch_pjrt::pjrt {

const PJRT_Extension_Base* Api::extension(PJRT_Extension_Type type) const {
  const PJRT_Extension_Base* extension = table_->extension_start;
  while (extension != nullptr && extension->type != type) extension = extension->next;
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
