// Counting by name, for events that are rare enough to look a counter up.
#pragma once

#include <string>

namespace torch_pjrt {

void count(const std::string& name);

}  // namespace torch_pjrt
