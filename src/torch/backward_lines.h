// Source lines of what autograd's threads record: they run no Python, but an operator's backward belongs to the line
// that called the operator.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include "lazy/source_location.h"

namespace torch_pjrt {

// To be called while an operator is recorded, with the line that it gets: if autograd made a node for the call, its
// backward will have this line.
void note_forward_line(c10::ArrayRef<c10::IValue> arguments, lazy::LocationId line);

// The line that called the operator whose backward this thread is running; 0 where that is not known. Takes no lock
// that is held while Python runs.
lazy::LocationId backward_line();

}  // namespace torch_pjrt
