// Cutting: everything pending on a device becomes one program, which is found or compiled and started.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "lazy/graph.h"

namespace torch_pjrt {

// Runs the pending graph. On return every buffer that had a pending value holds device data, whose contents may still be
// being computed; an asynchronous error shows when it is read or waited for. When compiling or starting fails the error is
// thrown and the graph stays pending as it was. Caller holds the lock. `cause` is for the record: "sync", "read".
void cut(lazy::Graph& graph, std::string_view cause);

// XLA flags for programs compiled from now on; they are part of a program's identity.
void set_compile_options(std::map<std::string, std::string> options);

// Programs kept in memory. The least recently used ones are dropped beyond XLA_COMPILATION_CACHE_SIZE (default 2048).
size_t num_cached_programs();
void clear_program_cache();

}  // namespace torch_pjrt
