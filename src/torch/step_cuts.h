// Cuts a program that never syncs once a round, so that each round runs one compiled program and nothing piles up.
#pragma once

#include "lazy/graph.h"
#include "torch/call_plan.h"

namespace torch_pjrt {

// All need lazy::mutex(). XLA_STEP_CUTS=0 switches this off.
//
// A training step ends where, after a backward and after parameters were written, an operator with gradients on is
// recorded outside of a backward: the first of the next forward. The optimizer is done by then, and gradients that
// zero_grad drops are gone. Other loops are recognised by repetition (exec/loop_finder.h).

// Counts the regions that are to stay one graph: nothing is cut here while one is open. Needs no lock.
void open_uncut_region();
void close_uncut_region();

// Before an operator is recorded: cuts if a round has ended.
void cut_between_rounds(lazy::Graph& graph);
// After an operator was recorded with these arguments.
void note_recorded(lazy::Graph& graph, const OpInfo& info, const lazy::Signature& signature,
                   c10::ArrayRef<c10::IValue> arguments);
// After a value came from the host.
void note_uploaded(lazy::Graph& graph, const TensorType& type);

}  // namespace torch_pjrt
