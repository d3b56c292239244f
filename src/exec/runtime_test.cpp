#include "exec/runtime.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <numeric>

#include "exec/device_memory.h"
#include "exec/statistics.h"
#include "exec/test_runtime.h"

namespace torch_pjrt {
namespace {

class RuntimeUse : public RuntimeTest {};

TEST_F(RuntimeUse, knows_its_devices) {
  const int count = Runtime::device_count();
  Runtime& runtime = Runtime::get();
  EXPECT_TRUE(Runtime::is_started());
  EXPECT_EQ(runtime.num_devices(), count);
  EXPECT_EQ(Runtime::device_count(), count);
  EXPECT_EQ(&Runtime::get(), &runtime);
  EXPECT_EQ(runtime.is_cpu(), runtime.platform() == "cpu");
  EXPECT_NE(runtime.fingerprint().find(runtime.platform()), std::string::npos);
  try {
    runtime.upload(nullptr, {DType::kF32, {0}}, count);
    FAIL() << "a device too many";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIndexError);
  }
}

TEST_F(RuntimeUse, values_survive_the_round_trip) {
  Runtime& runtime = Runtime::get();
  std::vector<int64_t> sent(1000);
  std::iota(sent.begin(), sent.end(), -500);
  for (int device = 0; device < runtime.num_devices(); ++device) {
    const Ref<DeviceValue> value = runtime.upload(sent.data(), {DType::kS64, {10, 100}}, device);
    EXPECT_EQ(value->device(), device);
    EXPECT_EQ(value->type(), (TensorType{DType::kS64, {10, 100}}));
    EXPECT_GE(value->size_bytes(), 8000u);
    std::vector<int64_t> received(1000);
    runtime.download(*value, received.data());
    EXPECT_EQ(received, sent);
    EXPECT_TRUE(value->is_ready());
    EXPECT_NO_THROW(value->await());
  }
}

TEST_F(RuntimeUse, empty_values_need_no_memory) {
  Runtime& runtime = Runtime::get();
  const Ref<DeviceValue> value = runtime.upload(nullptr, {DType::kF32, {3, 0}}, 0);
  EXPECT_NO_THROW(runtime.download(*value, nullptr));
}

TEST_F(RuntimeUse, releases_zero_copy_memory_after_the_value) {
  Runtime& runtime = Runtime::get();
  alignas(64) static float memory[256];
  std::fill_n(memory, 256, 2.0f);
  std::promise<void> released;
  Ref<DeviceValue> value = runtime.upload_zero_copy(memory, {DType::kF32, {256}}, 0, [&] { released.set_value(); });
  float received[256];
  runtime.download(*value, received);
  EXPECT_EQ(received[255], 2.0f);
  auto future = released.get_future();
  if (runtime.is_cpu()) {
    EXPECT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  }
  value.reset();
  EXPECT_EQ(future.wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

TEST_F(RuntimeUse, copies_between_devices) {
  Runtime& runtime = Runtime::get();
  if (runtime.num_devices() < 2) GTEST_SKIP() << "one device";
  const std::vector<float> sent{1, 2, 3};
  const Ref<DeviceValue> here = runtime.upload(sent.data(), {DType::kF32, {3}}, 0);
  EXPECT_EQ(runtime.copy_to_device(here, 0).get(), here.get());
  const Ref<DeviceValue> there = runtime.copy_to_device(here, 1);
  EXPECT_EQ(there->device(), 1);
  std::vector<float> received(3);
  runtime.download(*there, received.data());
  EXPECT_EQ(received, sent);
}

TEST_F(RuntimeUse, counts_live_and_peak_bytes) {
  Runtime& runtime = Runtime::get();
  DeviceMemory& memory = DeviceMemory::of(0);
  const std::vector<float> data(1 << 18);
  const int64_t before = memory.live_bytes();
  {
    const auto first = runtime.upload(data.data(), {DType::kF32, {1 << 18}}, 0);
    const auto second = runtime.upload(data.data(), {DType::kF32, {1 << 18}}, 0);
    EXPECT_EQ(memory.live_bytes() - before, 2 << 20);
  }
  EXPECT_EQ(memory.live_bytes(), before);
  EXPECT_GE(memory.peak_bytes(), before + (2 << 20));
  memory.reset_peak();
  EXPECT_EQ(memory.peak_bytes(), before);
}

TEST_F(RuntimeUse, measures_transfers) {
  Runtime& runtime = Runtime::get();
  const Metric::Snapshot sent_before = metric("OutboundData", Unit::kBytes).snapshot();
  const Metric::Snapshot received_before = metric("InboundData", Unit::kBytes).snapshot();
  const Metric::Snapshot time_before = metric("TransferFromDeviceTime").snapshot();
  float number = 1;
  const Ref<DeviceValue> value = runtime.upload(&number, {DType::kF32, {}}, 0);
  runtime.download(*value, &number);
  EXPECT_EQ(metric("OutboundData", Unit::kBytes).snapshot().accumulator - sent_before.accumulator, 4);
  EXPECT_EQ(metric("InboundData", Unit::kBytes).snapshot().accumulator - received_before.accumulator, 4);
  EXPECT_EQ(metric("TransferFromDeviceTime").snapshot().total_samples - time_before.total_samples, 1);
}

TEST_F(RuntimeUse, refuses_a_forked_child) {
  Runtime::get();
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      Runtime::get();
    } catch (const Error& error) {
      status = std::string(error.what()).find("'spawn'") != std::string::npos ? 0 : 2;
    }
    _exit(status);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_NO_THROW(Runtime::get());
}

}  // namespace
}  // namespace torch_pjrt
