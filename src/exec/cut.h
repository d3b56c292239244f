// Cutting: everything pending on a device becomes one program, which is found or compiled and started.
#pragma once

#include "lazy/graph.h"

namespace torch_pjrt {

// Runs the pending graph. On return every buffer that had a pending value holds device data, whose contents may still be
// being computed; an asynchronous error shows when it is read or waited for. When compiling fails the error is thrown and
// the graph stays pending as it was. Caller holds the lock.
void cut(lazy::Graph& graph);

// Programs kept in memory, for tests and reports.
size_t num_cached_programs();

}  // namespace torch_pjrt
