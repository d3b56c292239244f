// Python source lines of recorded operators, without depending on Python: a hook finds the running line.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace torch_pjrt::lazy {

// Number of a source line, the same for the process; 0 for none.
using LocationId = uint32_t;

// Thread safe. `text` is "function@file.py:line".
LocationId intern_location(const std::string& text);
// Empty for 0.
std::string location_text(LocationId id);

// Where the calling thread's program is.
struct CallSite {
  LocationId location = 0;
  // The value is read in order to print a tensor.
  bool is_printing = false;
};
// May take the GIL, so it is never called under lazy::mutex(). Must not throw.
using CallSiteHook = CallSite (*)();
void set_call_site_hook(CallSiteHook hook);
// Nothing when there is no hook (a program without Python).
CallSite find_call_site();

// Whether each recorded node gets its location: XLA_IR_DEBUG.
namespace internal {
inline std::atomic<bool> nodes_have_locations{false};
}
inline bool nodes_have_locations() { return internal::nodes_have_locations.load(std::memory_order_relaxed); }
void set_nodes_have_locations(bool wanted);

// Gives the calling line to the nodes that this thread records while it lives; costs one branch when nobody wants them.
// Make it before locking lazy::mutex(). Within another one it does nothing: the outer call is the user's.
class LocationScope {
 public:
  LocationScope() {
    if (nodes_have_locations()) [[unlikely]]
      enter();
  }
  ~LocationScope() {
    if (is_entered_) [[unlikely]]
      leave();
  }
  LocationScope(const LocationScope&) = delete;
  LocationScope& operator=(const LocationScope&) = delete;

  // What a node recorded now gets.
  static LocationId current();

 private:
  void enter();
  void leave();
  bool is_entered_ = false;
};

}  // namespace torch_pjrt::lazy
