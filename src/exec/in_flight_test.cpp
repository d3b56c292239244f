#include "exec/in_flight.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace torch_pjrt {
namespace {

TEST(InFlight, waits_for_what_was_started_before) {
  InFlight in_flight;
  const InFlight::Ticket first = in_flight.start();
  const InFlight::Ticket second = in_flight.start();
  std::atomic<bool> returned{false};
  std::thread waiter([&] {
    in_flight.wait();
    returned = true;
  });
  in_flight.finish(second, nullptr);
  EXPECT_FALSE(returned);
  in_flight.finish(first, nullptr);
  waiter.join();
  EXPECT_TRUE(returned);
}

TEST(InFlight, later_work_does_not_hold_up_a_wait) {
  InFlight in_flight;
  const InFlight::Ticket first = in_flight.start();
  std::thread finisher([&] {
    const InFlight::Ticket later = in_flight.start();
    in_flight.finish(first, nullptr);
    in_flight.finish(later, nullptr);
  });
  in_flight.wait();
  finisher.join();
  in_flight.wait();
}

TEST(InFlight, reports_the_first_error_once) {
  InFlight in_flight;
  const Error first(ErrorCode::kOutOfMemory, "first");
  const Error second(ErrorCode::kInternal, "second");
  in_flight.finish(in_flight.start(), &first);
  in_flight.finish(in_flight.start(), &second);
  in_flight.drain();
  try {
    in_flight.wait();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "first");
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  }
  EXPECT_NO_THROW(in_flight.wait());
  in_flight.finish(in_flight.start(), &second);
  in_flight.forget_error();
  EXPECT_NO_THROW(in_flight.wait());
}

}  // namespace
}  // namespace torch_pjrt
