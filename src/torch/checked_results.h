// Results that eager PyTorch would not have returned, because a check of another result throws.
#pragma once

#include "lazy/node.h"

namespace torch_pjrt {

// `check` is an operator without results that looks at one result of an operator: torch.linalg.inv computes an inverse
// and a status, and then checks the status. From here on, whatever comes from the other results depends on the check,
// so that it gives its error whenever it is read. Needs lazy::mutex().
void make_results_depend_on(const lazy::Value& check);

}  // namespace torch_pjrt
