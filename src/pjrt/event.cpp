#include "pjrt/event.h"

#include <atomic>
#include <memory>
#include <utility>

namespace torch_pjrt::pjrt {
namespace {

struct Registration {
  Api api;
  Event event;
  Event::Callback callback;
  // Hands the other members from the thread that registers to the one that calls back, whatever the plugin does.
  std::atomic<bool> is_complete{false};

  Registration(Api api, Event event, Event::Callback callback)
      : api(api), event(std::move(event)), callback(std::move(callback)) {
    is_complete.store(true, std::memory_order_release);
  }
};

void run_callback(PJRT_Error* error, void* user_arg) {
  const std::unique_ptr<Registration> registration(static_cast<Registration*>(user_arg));
  static_cast<void>(registration->is_complete.load(std::memory_order_acquire));
  if (error == nullptr) {
    registration->callback(nullptr);
    return;
  }
  const Error converted = take_error(registration->api.table(), error, "PJRT_Event_OnReady");
  registration->callback(&converted);
}

}  // namespace

PJRT_Event* Event::release() noexcept { return std::exchange(event_, nullptr); }

Event& Event::operator=(Event&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(event_, other.event_);
  return *this;
}

Event::~Event() {
  if (event_ == nullptr) return;
  PJRT_Event_Destroy_Args args{};
  args.event = event_;
  api_.call_quietly(TP_PJRT(PJRT_Event_Destroy), args);
}

void Event::await() const {
  if (event_ == nullptr) return;
  PJRT_Event_Await_Args args{};
  args.event = event_;
  api_.call(TP_PJRT(PJRT_Event_Await), args);
}

bool Event::is_ready() const {
  if (event_ == nullptr) return true;
  PJRT_Event_IsReady_Args args{};
  args.event = event_;
  api_.call(TP_PJRT(PJRT_Event_IsReady), args);
  return args.is_ready;
}

void Event::on_ready(Callback callback) && {
  if (event_ == nullptr) {
    callback(nullptr);
    return;
  }
  const Api api = api_;
  PJRT_Event_OnReady_Args args{};
  args.event = event_;
  auto registration = std::make_unique<Registration>(api_, std::move(*this), std::move(callback));
  args.callback = run_callback;
  args.user_arg = registration.get();
  api.call(TP_PJRT(PJRT_Event_OnReady), args);
  // Only once the plugin has accepted it does the callback own the registration, which may by now be gone.
  static_cast<void>(registration.release());
}

}  // namespace torch_pjrt::pjrt
