// The boundary where errors of the layers below become PyTorch's exceptions.
#pragma once

#include <c10/util/Exception.h>

#include <utility>

#include "base/error.h"

namespace torch_pjrt {

[[noreturn]] void rethrow_as_c10(const Error& error);

// Calls `f`; an Error leaves as the c10::Error of its class.
template <typename F>
decltype(auto) with_c10_errors(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const Error& error) {
    rethrow_as_c10(error);
  }
}

}  // namespace torch_pjrt
