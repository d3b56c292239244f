// Whether the plugin's compiler keeps optimization barriers until it has merged what is computed twice.
#pragma once

namespace torch_pjrt {

// Compiles two programs of a line at the first call, on XLA CPU; other platforms keep barriers. Starts the client.
bool merges_across_barriers();

}  // namespace torch_pjrt
