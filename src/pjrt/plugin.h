// A loaded PJRT plugin.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pjrt/api.h"
#include "pjrt/named_value.h"

namespace torch_pjrt::pjrt {

// Loaded once for each library path and never unloaded: plugins start threads and register exit handlers.
class Plugin {
 public:
  // Thread safe. Throws kNotFound when the file is missing, kFailedPrecondition when it is no usable PJRT plugin.
  static const Plugin& load(const std::string& library_path);

  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& library_path() const { return library_path_; }
  Api api() const { return api_; }
  // What the plugin says of itself: "xla_version", "stablehlo_current_version", ...
  const NamedValues& attributes() const { return attributes_; }
  std::optional<NamedValue> attribute(std::string_view name) const;

 private:
  explicit Plugin(std::string library_path);

  std::string library_path_;
  Api api_;
  NamedValues attributes_;
};

}  // namespace torch_pjrt::pjrt
