// A process that ends right after a backward.
//
// The engine's thread for the device frees what a backward held after it has let the caller go on. Where that includes
// Python objects and the interpreter has ended meanwhile, taking the GIL ends the thread in a destructor, and the
// process aborts. The thread works in order: when it has run another backward, it has freed the last one.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/autograd.h>

#include <exception>
#include <thread>

#include "lazy/graph.h"
#include "torch/api.h"
#include "torch/recomputation.h"

namespace torch_pjrt::api {
namespace {

std::vector<int> devices_in_use() {
  const lazy::Lock lock(lazy::mutex());
  std::vector<int> devices;
  for (const lazy::Graph* graph : lazy::Graph::all()) devices.push_back(graph->device());
  return devices;
}

void run_backward(int device) {
  const at::Tensor x = at::ones({}, at::Device(at::kXLA, static_cast<c10::DeviceIndex>(device)));
  x.set_requires_grad(true);
  torch::autograd::backward({x.mul(x)}, {});
}

}  // namespace

void settle_autograd() {
  if (!has_seen_backward()) return;
  // A thread of its own has no Python objects that this backward would hold in turn.
  std::thread([] {
    try {
      for (const int device : devices_in_use()) run_backward(device);
    } catch (const std::exception&) {
      // Nothing can be done about it at the end of the process.
    }
  }).join();
}

}  // namespace torch_pjrt::api
