// Where a program comes from when the process does not have it: the disk cache, else the compiler.
#pragma once

#include <string>

#include "exec/program.h"

namespace torch_pjrt {

// Keeps programs in `directory` from now on; an empty one keeps none. Before the first call it is what
// XLA_PERSISTENT_CACHE_PATH says (empty or 0: none), else torch_xla in the user's cache folder. Caller holds the lock.
void set_disk_cache(const std::string& directory, bool is_readonly);

// Counted as PersistentCacheHit or PersistentCacheMiss while there is a disk cache. A cache that fails is no error: it
// is reported once and the program compiled. Throws the compiler's error. Caller holds the lock.
Ref<Program> load_or_compile(ProgramSpec spec);

}  // namespace torch_pjrt
