#include "exec/timeline.h"

#include <gtest/gtest.h>

namespace torch_pjrt {
namespace {

using Kind = TimelineEvent::Kind;

TEST(Timeline, takes_events_only_while_it_is_on) {
  Timeline& timeline = Timeline::get();
  timeline.stop();
  const size_t before = timeline.events().size();
  {
    const TimelineSpan span(Kind::kCut);
  }
  EXPECT_EQ(timeline.events().size(), before);
  timeline.start();
  {
    TimelineSpan span(Kind::kUpload);
    span.bytes = 16;
  }
  timeline.stop();
  const auto events = timeline.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kUpload);
  EXPECT_EQ(events[0].bytes, 16);
  EXPECT_LE(events[0].begin_ns, events[0].end_ns);
}

TEST(Timeline, keeps_the_newest_events_in_order) {
  Timeline& timeline = Timeline::get();
  timeline.start();
  const auto now = Timeline::Clock::now();
  for (size_t i = 0; i < Timeline::kMaxEvents + 3; ++i) timeline.add(Kind::kWait, now, now, static_cast<int64_t>(i));
  timeline.stop();
  const auto events = timeline.events();
  ASSERT_EQ(events.size(), Timeline::kMaxEvents);
  EXPECT_EQ(events.front().program, 3);
  EXPECT_EQ(events.back().program, static_cast<int64_t>(Timeline::kMaxEvents + 2));
}

TEST(Timeline, an_event_begun_before_the_start_begins_at_it) {
  Timeline& timeline = Timeline::get();
  const auto early = Timeline::Clock::now();
  timeline.start();
  timeline.add(Kind::kExecute, early, Timeline::Clock::now());
  timeline.stop();
  EXPECT_EQ(timeline.events().at(0).begin_ns, 0);
}

}  // namespace
}  // namespace torch_pjrt
