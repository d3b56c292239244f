// Cutting: everything pending on a device becomes one program, which is found or compiled and started.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "lazy/graph.h"
#include "lazy/source_location.h"

namespace torch_pjrt {

// Runs the pending graph. On return every buffer that had a pending value holds device data, whose contents may still
// be being computed; an asynchronous error shows when it is read or waited for. When compiling or starting fails the
// error is thrown and the graph stays pending as it was. Caller holds the lock. What caused it (".item()", "sync") and
// the line that did are for the record.
void cut(lazy::Graph& graph, std::string_view cause, lazy::LocationId location = 0);
// The same for a read of one pending buffer: when the cut fails, the buffer's value alone is computed, and the rest
// stays pending. So a tensor whose computation fails does not keep others from being read.
void cut_for(lazy::Buffer& wanted, std::string_view cause, lazy::LocationId location = 0);
// Whether the data of a buffer, which is not pending, may turn out to be lost with a run that fails. Caller holds the
// lock.
bool may_be_lost(const lazy::Buffer& buffer);
// Blocks, without the lock, until such data exists; what a failed run has lost is started again. Waiting for the data
// that the buffer has then throws only what the value itself depends on.
Ref<lazy::DeviceData> make_good(const lazy::Buffer& buffer, std::string_view cause, lazy::LocationId location);
// Makes the pending value of an operator that is there for what it throws a part of the next program. What it throws,
// the cut or the wait after it throws, once. Caller holds the lock.
void hold_until_cut(lazy::Value check);
// To be called before a node is recorded while Timeline::is_on(). Caller holds the lock.
void note_recording(const lazy::Graph& graph);

// Cuts a graph of XLA_MAX_PENDING_NODES (default 8192) operators: a loop that never syncs stays bounded, and XLA's
// compile time grows faster than the number of operators. Caller holds the lock.
void cut_when_long(lazy::Graph& graph);

// XLA flags for programs compiled from now on; they are part of a program's identity.
void set_compile_options(std::map<std::string, std::string> options);

// Programs kept in memory. The least recently used ones are dropped beyond XLA_COMPILATION_CACHE_SIZE (default 2048),
// beyond a quarter of the host's memory, and where they take more than a share of the memory mappings that the system
// allows (exec/memory_mappings.h).
size_t num_cached_programs();
void clear_program_cache();
// The plugin's form of the optimized program with this ProgramRecord::id: usually a serialized HloModuleProto. Throws
// kValueError when the program is no longer in memory.
std::string optimized_program(int64_t id);

}  // namespace torch_pjrt
