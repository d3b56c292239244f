// Timed events of the process for torch_xla.debug.report: a bounded ring, off until somebody starts it. Thread safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace torch_pjrt {

struct TimelineEvent {
  enum class Kind : uint8_t {
    kRecord,    // from the first operator after a cut to the next cut
    kCut,       // finding or making the program, up to its start; contains kCompile
    kCompile,   // by the plugin
    kExecute,   // on the device, from the start of the program to its end
    kWait,      // the host waits for the device
    kDownload,  // includes the wait for the value
    kUpload,
  };
  Kind kind = Kind::kRecord;
  int64_t begin_ns = 0;  // since the recording started
  int64_t end_ns = 0;
  int64_t program = -1;  // id of the ProgramRecord; -1 where there is none
  int64_t bytes = 0;     // of a transfer
  std::string cause;     // of a cut
};

class Timeline {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMaxEvents = 65536;

  static Timeline& get();

  // Whether events are taken: what has a cost asks first.
  static bool is_on() { return is_on_.load(std::memory_order_relaxed); }
  // Forgets earlier events.
  void start();
  void stop();
  // The newest kMaxEvents, in order of their end.
  std::vector<TimelineEvent> events() const;

  // Nothing while off.
  void add(TimelineEvent::Kind kind, Clock::time_point begin, Clock::time_point end, int64_t program = -1,
           int64_t bytes = 0, std::string cause = {});

 private:
  inline static std::atomic<bool> is_on_{false};
};

// Adds an event that lasts from its making to its end.
class TimelineSpan {
 public:
  explicit TimelineSpan(TimelineEvent::Kind kind) : kind_(kind), is_on_(Timeline::is_on()) {
    if (is_on_) [[unlikely]]
      begin_ = Timeline::Clock::now();
  }
  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;
  ~TimelineSpan();

  int64_t program = -1;
  int64_t bytes = 0;
  std::string cause;

 private:
  TimelineEvent::Kind kind_;
  bool is_on_;
  Timeline::Clock::time_point begin_;
};

}  // namespace torch_pjrt
