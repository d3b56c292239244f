// Finds the line of Python code that is running, for src/lazy/source_location.h.
#pragma once

#include <string>
#include <vector>

namespace torch_pjrt {

// Installs the hook. Files whose path starts with one of `library_prefixes` are library code, and so is the standard
// library; frames of library code are passed over while another frame is found. Caller holds the GIL.
void install_call_site_hook(std::vector<std::string> library_prefixes);

}  // namespace torch_pjrt
