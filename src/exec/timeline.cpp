#include "exec/timeline.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

namespace torch_pjrt {
namespace {

struct Ring {
  std::mutex mutex;
  std::vector<TimelineEvent> events;
  size_t next = 0;  // the oldest event, once the ring is full
  Timeline::Clock::time_point origin;
};

// Leaked: threads of the plugin may report while static objects are destroyed.
Ring& ring() {
  static auto* instance = new Ring();
  return *instance;
}

int64_t nanoseconds(Timeline::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

}  // namespace

Timeline& Timeline::get() {
  static auto* instance = new Timeline();
  return *instance;
}

void Timeline::start() {
  Ring& all = ring();
  const std::lock_guard lock(all.mutex);
  all.events.clear();
  all.next = 0;
  all.origin = Clock::now();
  is_on_.store(true, std::memory_order_relaxed);
}

void Timeline::stop() { is_on_.store(false, std::memory_order_relaxed); }

std::vector<TimelineEvent> Timeline::events() const {
  Ring& all = ring();
  const std::lock_guard lock(all.mutex);
  std::vector<TimelineEvent> result = all.events;
  std::rotate(result.begin(), result.begin() + static_cast<ptrdiff_t>(all.next), result.end());
  return result;
}

void Timeline::add(TimelineEvent::Kind kind, Clock::time_point begin, Clock::time_point end, int64_t program,
                   int64_t bytes, std::string cause) {
  if (!is_on()) return;
  Ring& all = ring();
  const std::lock_guard lock(all.mutex);
  // Begun before the recording was started.
  if (begin < all.origin) begin = all.origin;
  TimelineEvent event{
      kind, nanoseconds(begin - all.origin), nanoseconds(end - all.origin), program, bytes, std::move(cause)};
  if (all.events.size() < kMaxEvents) {
    all.events.push_back(std::move(event));
    return;
  }
  all.events[all.next] = std::move(event);
  all.next = (all.next + 1) % kMaxEvents;
}

TimelineSpan::~TimelineSpan() {
  if (!is_on_) return;
  try {
    Timeline::get().add(kind_, begin_, Timeline::Clock::now(), program, bytes, std::move(cause));
  } catch (const std::exception&) {
    // Without memory for it the event is missing; nothing else depends on it.
  }
}

}  // namespace torch_pjrt
