// On which thread a backward is recorded.
#pragma once

namespace torch_pjrt {

// To be called when a thread records an operator. Autograd hands the backward of any device but the CPU to a thread of
// its own, so that kernels of several devices start side by side. Recording waits for no device: the changes of thread
// and of the GIL's owner cost more than a small model's backward. So from its first operator on, a thread runs its
// backwards itself, unless it calls torch.autograd.set_multithreading_enabled(True).
void run_backward_on_this_thread();

}  // namespace torch_pjrt
