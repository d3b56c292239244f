// A call's arguments as a signature has them.
#pragma once

#include <ATen/core/ivalue.h>

#include "torch/op_info.h"

namespace torch_pjrt {

lazy::ScalarRef add_slot(lazy::Signature& signature, lazy::ScalarKind kind);

// Lays out one argument, and adds the operands and slots that it needs to `signature`. TypeError for a tensor of a
// dtype that XLA lacks.
lazy::Argument make_argument(lazy::Signature& signature, const ArgumentRule& rule, const c10::IValue& value);

}  // namespace torch_pjrt
