// Key-value pairs that a plugin takes as options and reports as attributes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pjrt_c_api.h"

namespace torch_pjrt::pjrt {

using NamedValue = std::variant<std::string, int64_t, std::vector<int64_t>, float, bool>;
using NamedValues = std::vector<std::pair<std::string, NamedValue>>;

// Points into `values`, which must outlive the result.
std::vector<PJRT_NamedValue> to_pjrt(const NamedValues& values);
NamedValues from_pjrt(const PJRT_NamedValue* values, size_t count);

// "1.2.3" for a list, "true" for a bool.
std::string to_string(const NamedValue& value);

}  // namespace torch_pjrt::pjrt
