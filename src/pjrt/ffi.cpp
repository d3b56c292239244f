#include "pjrt/ffi.h"

namespace torch_pjrt::pjrt {
namespace {

// The extension's header does not come with pjrt_c_api.h. These structs follow xla/pjrt/c/pjrt_c_api_ffi_extension.h;
// the argument struct has no extension_start.
struct RegisterHandlerArgs {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  void* handler;
  const char* platform_name;
  size_t platform_name_size;
  int traits;
};

struct FfiExtension {
  PJRT_Extension_Base base;
  void* type_id_register;
  void* user_data_add;
  PJRT_Error* (*register_handler)(RegisterHandlerArgs* args);
};

constexpr size_t kExtensionEnd = offsetof(FfiExtension, register_handler) + sizeof(void*);
constexpr size_t kArgsEnd = offsetof(RegisterHandlerArgs, traits) + sizeof(int);

const FfiExtension* find_extension(const Api& api) {
  const PJRT_Extension_Base* base = api.extension(PJRT_Extension_Type_FFI);
  if (base == nullptr || base->struct_size < kExtensionEnd) return nullptr;
  const auto* extension = reinterpret_cast<const FfiExtension*>(base);
  return extension->register_handler == nullptr ? nullptr : extension;
}

}  // namespace

bool has_ffi(const Api& api) { return find_extension(api) != nullptr; }

void register_ffi_handler(const Api& api, std::string_view target, std::string_view platform, void* handler) {
  const FfiExtension* extension = find_extension(api);
  TP_USER_CHECK(extension != nullptr, kUnimplemented, "PJRT_FFI_Register_Handler: the plugin (PJRT API ",
                api.major_version(), ".", api.minor_version(), ") has no FFI extension");
  RegisterHandlerArgs args{kArgsEnd, target.data(), target.size(), handler, platform.data(), platform.size(), 0};
  if (PJRT_Error* error = extension->register_handler(&args)) {
    throw take_error(api.table(), error, concat("PJRT_FFI_Register_Handler(", target, ")"));
  }
}

}  // namespace torch_pjrt::pjrt
