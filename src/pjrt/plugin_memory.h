// The memory of a plugin whose device is the host.
#pragma once

#include "base/large_blocks.h"
#include "pjrt/plugin.h"

namespace torch_pjrt::pjrt {

// The large blocks of CPU plugins.
LargeBlocks& plugin_blocks();

// Makes the plugin take its large aligned blocks from plugin_blocks(). PJRT has no way to hand an allocator to a
// plugin, so this replaces what the loader put into the plugin's table of imported functions (posix_memalign,
// aligned_alloc, free, realloc); no other library is touched. Returns false, and changes nothing, when the plugin does
// not import them as dynamic symbols, or the platform is not Linux with ELF of 64 bits.
bool use_plugin_blocks(const Plugin& plugin);

}  // namespace torch_pjrt::pjrt
