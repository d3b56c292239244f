// torch_xla._XLAC: src/torch/api.h for Python. No logic here; every function releases the GIL.
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "python/call_site.h"
#include "torch/api.h"

namespace torch_pjrt {
namespace {

namespace py = pybind11;

// Defines a function whose exceptions become PyTorch's Python classes and which runs without the GIL.
template <typename Function>
void def(py::module_& m, const char* name, Function&& function) {
  m.def(name, torch::wrap_pybind_function_no_gil(std::forward<Function>(function)));
}

void define_devices(py::module_& m) {
  def(m, "register_plugin", &api::register_plugin);
  def(m, "is_client_started", &api::is_client_started);
  def(m, "device_count", &api::device_count);
  def(m, "platform", &api::platform);
  def(m, "plugin_description", &api::plugin_description);
  def(m, "device_descriptions", &api::device_descriptions);
  def(m, "current_device", &api::current_device);
  def(m, "set_current_device", &api::set_current_device);
}

void define_execution(py::module_& m) {
  def(m, "sync", &api::sync);
  def(m, "sync_tensors", &api::sync_tensors);
  def(m, "wait_device_ops", &api::wait_device_ops);
  def(m, "settle_autograd", &api::settle_autograd);
  def(m, "pending_nodes", &api::pending_nodes);
  def(m, "set_compile_options", &api::set_compile_options);
  def(m, "initialize_cache", &api::initialize_cache);
  def(m, "num_cached_programs", &api::num_cached_programs);
  def(m, "num_remembered_calls", &api::num_remembered_calls);
  def(m, "open_uncut_region", &api::open_uncut_region);
  def(m, "close_uncut_region", &api::close_uncut_region);
}

void define_random(py::module_& m) {
  def(m, "manual_seed", &api::manual_seed);
  def(m, "rng_state", [](int device) {
    const api::RngState state = api::rng_state(device);
    return std::pair(state.seed, state.offset);
  });
  def(m, "set_rng_state",
      [](int device, uint64_t seed, uint64_t offset) { api::set_rng_state(device, {seed, offset}); });
}

void define_memory(py::module_& m) {
  def(m, "bytes_live", &api::bytes_live);
  def(m, "bytes_peak", &api::bytes_peak);
  def(m, "reset_peak", &api::reset_peak);
  def(m, "bytes_limit", &api::bytes_limit);
  def(m, "release_freed_memory", &api::release_freed_memory);
}

void define_tensors(py::module_& m) {
  def(m, "clone_storage", &api::clone_storage);
  def(m, "storage_to_cpu", &api::storage_to_cpu);
  def(m, "resize_storage", &api::resize_storage);
  def(m, "optimization_barrier", &api::optimization_barrier);
  def(m, "optimization_barrier_", &api::optimization_barrier_);
  // Names that existing programs call although they are private.
  def(m, "_xla_get_tensor_id", &api::tensor_id);
  def(m, "_get_xla_tensors_text", &api::tensors_text);
  def(m, "_get_xla_tensors_hlo", &api::tensors_hlo);
  def(m, "_get_xla_tensors_dot", &api::tensors_dot);
  def(m, "_xla_get_default_device", [] { return "xla:" + std::to_string(api::current_device()); });
  m.def("_xla_sync_multi",
        torch::wrap_pybind_function_no_gil([](const std::vector<at::Tensor>& tensors,
                                              const std::vector<std::string>& devices, bool wait,
                                              bool sync_xla_data) { api::sync_tensors(tensors, wait); }),
        py::arg("tensors"), py::arg("devices") = std::vector<std::string>(), py::arg("wait") = true,
        py::arg("sync_xla_data") = true);
}

void define_host_kernels(py::module_& m) {
  def(m, "host_kernels_on", &api::host_kernels_on);
  def(m, "set_host_kernels_wanted", &api::set_host_kernels_wanted);
}

void define_statistics(py::module_& m) {
  py::class_<api::ExecutableStatistics>(m, "ExecutableStatistics")
      .def_readonly("name", &api::ExecutableStatistics::name)
      .def_readonly("compile_seconds", &api::ExecutableStatistics::compile_seconds)
      .def_readonly("runs", &api::ExecutableStatistics::runs)
      .def_readonly("argument_bytes", &api::ExecutableStatistics::argument_bytes)
      .def_readonly("output_bytes", &api::ExecutableStatistics::output_bytes)
      .def_readonly("temp_bytes", &api::ExecutableStatistics::temp_bytes)
      .def_readonly("alias_bytes", &api::ExecutableStatistics::alias_bytes)
      .def_readonly("num_nodes", &api::ExecutableStatistics::num_nodes)
      .def_readonly("id", &api::ExecutableStatistics::id)
      .def_readonly("cause", &api::ExecutableStatistics::cause)
      .def_readonly("explanation", &api::ExecutableStatistics::explanation)
      .def_readonly("num_parameters", &api::ExecutableStatistics::num_parameters)
      .def_readonly("num_outputs", &api::ExecutableStatistics::num_outputs);
  py::class_<api::Timing>(m, "Timing")
      .def_readonly("total_samples", &api::Timing::total_samples)
      .def_readonly("accumulator", &api::Timing::accumulator)
      .def_readonly("is_time", &api::Timing::is_time)
      .def_readonly("samples", &api::Timing::samples);
  def(m, "executables", &api::executables);
  def(m, "counters", &api::counters);
  def(m, "timings", &api::timings);
  def(m, "clear_counters", &api::clear_counters);
  def(m, "clear_metrics", &api::clear_metrics);
}

void define_seeing(py::module_& m) {
  py::class_<api::ProgramGraph::Node>(m, "ProgramNode")
      .def_readonly("op", &api::ProgramGraph::Node::op)
      .def_readonly("type", &api::ProgramGraph::Node::type)
      .def_readonly("location", &api::ProgramGraph::Node::location)
      .def_readonly("size_bytes", &api::ProgramGraph::Node::size_bytes)
      .def_readonly("region", &api::ProgramGraph::Node::region)
      .def_readonly("operands", &api::ProgramGraph::Node::operands)
      .def_readonly("is_output", &api::ProgramGraph::Node::is_output);
  py::class_<api::ProgramGraph>(m, "ProgramGraph")
      .def_readonly("nodes", &api::ProgramGraph::nodes)
      .def_readonly("parameters", &api::ProgramGraph::parameters)
      .def_readonly("donated", &api::ProgramGraph::donated);
  py::class_<api::Event>(m, "Event")
      .def_readonly("kind", &api::Event::kind)
      .def_readonly("begin_ns", &api::Event::begin_ns)
      .def_readonly("end_ns", &api::Event::end_ns)
      .def_readonly("program", &api::Event::program)
      .def_readonly("bytes", &api::Event::bytes)
      .def_readonly("cause", &api::Event::cause);
  m.def("install_call_site_hook", &install_call_site_hook);
  m.def("optimized_program", [](int64_t id) { return py::bytes(api::optimized_program(id)); });
  def(m, "program_graph", &api::program_graph);
  def(m, "set_ir_debug", &api::set_ir_debug);
  def(m, "ir_debug", &api::ir_debug);
  def(m, "start_recording", &api::start_recording);
  def(m, "stop_recording", &api::stop_recording);
  def(m, "is_recording", &api::is_recording);
  def(m, "recorded_events", &api::recorded_events);
}

}  // namespace

PYBIND11_MODULE(_XLAC, m) {
  m.doc() = "Bindings of torch-pjrt's C++ API; use the functions of torch_xla instead.";
  define_devices(m);
  define_execution(m);
  define_random(m);
  define_memory(m);
  define_tensors(m);
  define_statistics(m);
  define_seeing(m);
  define_host_kernels(m);
}

}  // namespace torch_pjrt
