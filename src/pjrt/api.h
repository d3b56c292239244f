// A plugin's table of functions, called through one template that knows the rules of the PJRT C API.
#pragma once

#include <cstddef>

#include "base/error.h"
#include "pjrt/error.h"
#include "pjrt_c_api.h"

// What Api::call needs to know of a function: the field, its end within the table, the size of its argument struct as
// this build knows it, its name.
#define TP_PJRT(function)                                                                                     \
  ::torch_pjrt::pjrt::Function<function##_Args> {                                                             \
    &PJRT_Api::function, offsetof(PJRT_Api, function) + sizeof(void*), function##_Args_STRUCT_SIZE, #function \
  }

namespace torch_pjrt::pjrt {

template <typename Args>
struct Function {
  PJRT_Error* (*PJRT_Api::*field)(Args*);
  size_t end_bytes;
  size_t args_bytes;
  const char* name;
};

// A cheap handle: plugins are never unloaded, so the table lives as long as the process.
class Api {
 public:
  explicit Api(const PJRT_Api* table) : table_(table) {}

  int major_version() const { return table_->pjrt_api_version.major_version; }
  int minor_version() const { return table_->pjrt_api_version.minor_version; }
  const PJRT_Api& table() const { return *table_; }

  // An older plugin's table ends early, and any plugin may leave a function out.
  template <typename Args>
  bool has(const Function<Args>& function) const {
    return function.end_bytes <= table_->struct_size && table_->*function.field != nullptr;
  }

  // Calls with args.struct_size filled in. Throws kUnimplemented when the plugin lacks the function, and its error
  // otherwise.
  template <typename Args>
  void call(const Function<Args>& function, Args& args) const {
    if (!has(function)) [[unlikely]]
      throw_missing(function.name);
    args.struct_size = function.args_bytes;
    if (PJRT_Error* error = (table_->*function.field)(&args)) [[unlikely]]
      throw take_error(*table_, error, function.name);
  }

  // For destructors: the error, which no one could act on, is dropped.
  template <typename Args>
  void call_quietly(const Function<Args>& function, Args& args) const noexcept {
    if (!has(function)) return;
    args.struct_size = function.args_bytes;
    if (PJRT_Error* error = (table_->*function.field)(&args)) drop(error);
  }

  // The extension of this type; null when the plugin has none.
  const PJRT_Extension_Base* extension(PJRT_Extension_Type type) const;

  void drop(PJRT_Error* error) const noexcept;

 private:
  [[noreturn]] void throw_missing(const char* name) const;

  const PJRT_Api* table_;
};

}  // namespace torch_pjrt::pjrt
