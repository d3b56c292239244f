#include "python/call_site.h"

#include <Python.h>
#include <frameobject.h>

#include <string_view>
#include <unordered_map>
#include <utility>

#include "lazy/source_location.h"
#include "torch/backward_lines.h"

namespace torch_pjrt {
namespace {

struct CodeInfo {
  std::string name;  // "forward@linear.py:"
  bool is_library = false;
  bool is_printing = false;  // torch/_tensor_str.py
  bool is_backward = false;  // calls the autograd engine
  // By offset of the running instruction, whose line is costly to find.
  std::unordered_map<int, lazy::LocationId> locations;
};

// Guarded by the GIL. Code objects in it are held, so that an address names one of them for good.
struct CodeTable {
  std::vector<std::string> library_prefixes;
  std::unordered_map<PyCodeObject*, CodeInfo> codes;
};

// Leaked: threads may record while the interpreter ends.
CodeTable& table() {
  static auto* instance = new CodeTable();
  return *instance;
}

std::string to_string(PyObject* text) {
  const char* utf8 = PyUnicode_AsUTF8(text);
  if (utf8 != nullptr) return utf8;
  PyErr_Clear();
  return "?";
}

bool is_library_file(std::string_view path) {
  if (path.starts_with("<frozen")) return true;
  for (const std::string& prefix : table().library_prefixes) {
    if (!path.starts_with(prefix)) continue;
    // Third-party packages lie below the standard library's directory and are user code.
    const std::string_view rest = path.substr(prefix.size());
    return !rest.starts_with("site-packages") && !rest.starts_with("dist-packages");
  }
  return false;
}

CodeInfo& info_of(PyCodeObject* code) {
  auto& codes = table().codes;
  const auto found = codes.find(code);
  if (found != codes.end()) return found->second;
  Py_INCREF(code);
  const std::string path = to_string(code->co_filename);
  const std::string file = path.substr(path.rfind('/') + 1);
  CodeInfo& info = codes[code];
  info.name = to_string(code->co_name) + "@" + file + ":";
  info.is_library = is_library_file(path);
  info.is_printing = info.is_library && file == "_tensor_str.py";
  info.is_backward = info.is_library && info.name == "_engine_run_backward@graph.py:";
  return info;
}

lazy::LocationId location_of(PyFrameObject* frame, CodeInfo& info) {
  const auto [it, is_new] = info.locations.emplace(PyFrame_GetLasti(frame), 0);
  if (is_new) it->second = lazy::intern_location(info.name + std::to_string(PyFrame_GetLineNumber(frame)));
  return it->second;
}

// From `frame`, which it releases: the innermost one of user code; of library code when there is no other.
lazy::CallSite walk_frames(PyFrameObject* frame) {
  lazy::CallSite site;
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    CodeInfo& info = info_of(code);
    Py_DECREF(code);
    site.is_printing = site.is_printing || info.is_printing;
    if (!info.is_library || site.location == 0) site.location = location_of(frame, info);
    PyFrameObject* outer = info.is_library ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = outer;
  }
  return site;
}

bool is_in_backward(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  const bool is_backward = info_of(code).is_backward;
  Py_DECREF(code);
  return is_backward;
}

// The line of the one thread that waits for a backward; none when there are several. Threads end with the GIL held, so
// none does meanwhile.
lazy::CallSite find_waiting_backward() {
  PyFrameObject* found = nullptr;
  int count = 0;
  for (PyThreadState* thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); thread != nullptr;
       thread = PyThreadState_Next(thread)) {
    PyFrameObject* frame = PyThreadState_GetFrame(thread);
    if (frame != nullptr && is_in_backward(frame) && ++count == 1) {
      found = frame;
    } else {
      Py_XDECREF(frame);
    }
  }
  if (count == 1) return walk_frames(found);
  Py_XDECREF(found);
  return {};
}

lazy::CallSite find_python_line() {
  if (Py_IsInitialized() == 0) return {};
  // A thread that never ran Python has no frame, and making it a Python thread would cost more than the answer is
  // worth.
  if (PyGILState_GetThisThreadState() == nullptr) return {backward_line()};
  const PyGILState_STATE state = PyGILState_Ensure();
  lazy::CallSite site;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  // Autograd runs a formula of its own, perhaps in a thread without Python code: what it records belongs to the line of
  // the forward.
  if (frame == nullptr || is_in_backward(frame)) site.location = backward_line();
  if (site.location != 0) {
    Py_XDECREF(frame);
  } else {
    site = frame == nullptr ? find_waiting_backward() : walk_frames(frame);
  }
  PyGILState_Release(state);
  return site;
}

}  // namespace

void install_call_site_hook(std::vector<std::string> library_prefixes) {
  table().library_prefixes = std::move(library_prefixes);
  lazy::set_call_site_hook(&find_python_line);
}

}  // namespace torch_pjrt
