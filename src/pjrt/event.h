// Completion of asynchronous work.
#pragma once

#include <functional>

#include "pjrt/api.h"

namespace torch_pjrt::pjrt {

class Event {
 public:
  // Called once, on a thread of the plugin, with the error or null. Must not throw and should be short.
  using Callback = std::function<void(const Error* error)>;

  Event() = default;
  // Takes ownership of `event`, which may be null: then the work has completed.
  Event(Api api, PJRT_Event* event) : api_(api), event_(event) {}
  Event(Event&& other) noexcept : api_(other.api_), event_(other.release()) {}
  Event& operator=(Event&& other) noexcept;
  ~Event();

  // Blocks; throws the work's error.
  void await() const;
  // True also when the work failed.
  bool is_ready() const;
  // Gives the event away: it lives until the callback has run.
  void on_ready(Callback callback) &&;

 private:
  PJRT_Event* release() noexcept;

  Api api_{nullptr};
  PJRT_Event* event_ = nullptr;
};

}  // namespace torch_pjrt::pjrt
