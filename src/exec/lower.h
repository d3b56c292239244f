// From a snapshot of the recorded graph to the text of one StableHLO module.
//
// Parameters of @main: the leaves in the snapshot's order, then the integer scalars, then the real scalars: one
// parameter each or, where `packs_scalars` says so, one tensor<nxi64> and one tensor<nxf64> (each only when there are
// any).
#pragma once

#include <string>
#include <vector>

#include "exec/snapshot.h"
#include "ops/value_check.h"

namespace torch_pjrt {

struct LoweredModule {
  std::string text;
  std::vector<TensorType> outputs;
  // For each of Snapshot::buffers, the output that holds its value.
  std::vector<uint32_t> buffer_outputs;
  // Parameters whose buffer an output may reuse.
  std::vector<bool> donated;
  size_t num_aliased = 0;
};

LoweredModule lower(const Snapshot& snapshot);

// Scalars of their own let XLA compile one kernel for all parameters of one shape in an optimizer step; read from a
// packed vector, each place in it is a kernel of its own. But XLA takes quadratic time for a long chain that reads many
// of them.
bool packs_scalars(const Snapshot& snapshot);

// Runs one lowering on typed parameters and returns the result types: finds arguments that a lowering declines, and
// shapes where PyTorch has no meta kernel.
struct TrialOutput {
  bool is_defined = true;
  TensorType type;
};
struct TrialLowering {
  std::vector<TrialOutput> outputs;
  std::vector<OperandCheck> checks;
};
TrialLowering try_lowering(const lazy::Signature& signature, bool has_outputs);

}  // namespace torch_pjrt
