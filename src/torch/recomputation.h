// Recognises gradient checkpointing while it happens, with unmodified torch.utils.checkpoint.
#pragma once

#include "lazy/graph.h"

namespace torch_pjrt {

// To be called before an operator is recorded, under the lock: enters or leaves the graph's rematerialisation region
// according to what autograd is doing on this thread. XLA_REMAT_BARRIER=0 switches it off.
void follow_recomputation(lazy::Graph& graph);

// Whether an operator was ever recorded inside a backward.
bool has_seen_backward();

}  // namespace torch_pjrt
