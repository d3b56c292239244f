#include "torch/backward_thread.h"

#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/graph_task.h>

namespace torch_pjrt {
namespace {

thread_local bool is_set = false;

void set() {
  // A thread of autograd's has tasks in its queue that were promised to it.
  if (torch::autograd::get_current_graph_task_id() != -1) return;
  is_set = true;
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

}  // namespace

void run_backward_on_this_thread() {
  if (!is_set) [[unlikely]]
    set();
}

}  // namespace torch_pjrt
