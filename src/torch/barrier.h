// Optimization barriers in the recorded graph.
#pragma once

#include <vector>

#include "lazy/node.h"

namespace torch_pjrt {

// One StableHLO optimization_barrier over all `values` (at least one), results in the same order. Caller holds the
// lock.
std::vector<lazy::Value> record_barrier(std::vector<lazy::Value> values);

}  // namespace torch_pjrt
