#include "exec/program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "exec/device_memory.h"
#include "exec/runtime.h"
#include "exec/statistics.h"
#include "exec/test_runtime.h"

#ifdef TORCH_PJRT_HAVE_FFI
#include "pjrt/ffi.h"
#include "xla/ffi/api/ffi.h"
#endif

namespace torch_pjrt {
namespace {

const TensorType kVector{DType::kF32, {1024}};

class ProgramUse : public RuntimeTest {
 protected:
  static Ref<DeviceValue> upload(float value, int device = 0) {
    const std::vector<float> data(1024, value);
    return Runtime::get().upload(data.data(), kVector, device);
  }
  static float first(const Ref<DeviceValue>& value) {
    std::vector<float> data(static_cast<size_t>(value->type().numel()));
    Runtime::get().download(*value, data.data());
    return data[0];
  }
};

// (x, y) -> (x + y), which may take over x.
ProgramSpec add_spec(bool donate) {
  ProgramSpec spec;
  spec.stablehlo = concat("module @add { func.func public @main(%x: tensor<1024xf32>",
                          donate ? " {tf.aliasing_output = 0 : i32}" : "",
                          ", %y: tensor<1024xf32>) -> tensor<1024xf32> {\n"
                          "  %0 = stablehlo.add %x, %y : tensor<1024xf32>\n  return %0 : tensor<1024xf32>\n} }");
  spec.parameters = {kVector, kVector};
  spec.outputs = {kVector};
  if (donate) spec.donated = {true};
  spec.cause = "sync";
  spec.num_nodes = 1;
  return spec;
}

TEST_F(ProgramUse, runs_on_every_device) {
  const Ref<Program> program = compile_program(add_spec(false));
  for (int device = 0; device < Runtime::get().num_devices(); ++device) {
    const auto outputs = program->run(std::vector{upload(1, device), upload(2, device)}, device);
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0]->device(), device);
    EXPECT_EQ(outputs[0]->type(), kVector);
    EXPECT_EQ(first(outputs[0]), 3);
    Runtime::get().wait_all(device);
  }
}

TEST_F(ProgramUse, chains_without_waiting) {
  const Ref<Program> program = compile_program(add_spec(true));
  const Ref<DeviceValue> one = upload(1);
  Ref<DeviceValue> sum = upload(0);
  for (int i = 0; i < 100; ++i) sum = program->run(std::vector{sum, one}, 0)[0];
  EXPECT_EQ(first(sum), 100);
}

TEST_F(ProgramUse, donation_consumes_the_argument) {
  const Ref<Program> program = compile_program(add_spec(true));
  EXPECT_TRUE(program->is_donated(0));
  EXPECT_FALSE(program->is_donated(1));
  DeviceMemory& memory = DeviceMemory::of(0);
  const Ref<DeviceValue> x = upload(1);
  const Ref<DeviceValue> y = upload(2);
  const int64_t before = memory.live_bytes();
  const auto outputs = program->run(std::vector{x, y}, 0);
  EXPECT_EQ(memory.live_bytes(), before);
  EXPECT_TRUE(x->is_donated());
  EXPECT_FALSE(y->is_donated());
  EXPECT_EQ(first(outputs[0]), 3);
  EXPECT_THROW(first(x), Error);
  EXPECT_THROW(program->run(std::vector{x, y}, 0), Error);
  EXPECT_EQ(first(y), 2);
}

TEST_F(ProgramUse, keeps_a_donated_argument_when_told) {
  const Ref<Program> program = compile_program(add_spec(true));
  const Ref<DeviceValue> x = upload(1);
  const Ref<DeviceValue> y = upload(2);
  DeviceValue* const arguments[] = {x.get(), y.get()};
  const int64_t keep = 0;
  const auto outputs = program->run(arguments, 0, {&keep, 1});
  EXPECT_EQ(first(outputs[0]), 3);
  EXPECT_FALSE(x->is_donated());
  EXPECT_EQ(first(x), 1);
}

TEST_F(ProgramUse, what_a_refused_launch_has_consumed_answers_with_its_error) {
  const Ref<Program> program = compile_program(add_spec(true));
  Runtime& runtime = Runtime::get();
  const std::vector<float> ones(static_cast<size_t>(kVector.numel()), 1.0f);
  std::vector<pjrt::Buffer> buffers;
  buffers.push_back(runtime.client().to_device(ones.data(), kVector, runtime.device(0)));
  buffers[0].delete_memory();
  const auto x = make_ref<DeviceValue>(kVector, 0, std::move(buffers), kVector.size_bytes());
  const Ref<DeviceValue> y = upload(2);
  const auto error_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::kInternal, "no error");
  };
  const Error refused = error_of([&] { program->run(std::vector{x, y}, 0); });
  for (const Error& later : {error_of([&] { program->run(std::vector{x, y}, 0); }), error_of([&] { first(x); }),
                             error_of([&] { x->await(); })}) {
    EXPECT_EQ(later.code(), refused.code());
    EXPECT_TRUE(std::string(later.what()).starts_with(refused.what())) << later.what();
    EXPECT_NE(std::string(later.what()).find("was lost with it"), std::string::npos) << later.what();
  }
  EXPECT_EQ(first(y), 2);
}

TEST_F(ProgramUse, has_a_record_that_outlives_it) {
  Ref<Program> program = compile_program(add_spec(true));
  program->run(std::vector{upload(1), upload(2)}, 0);
  program->run(std::vector{upload(1), upload(2)}, 0);
  const int64_t id = program->record().id;
  program.reset();
  const auto records = list_program_records();
  ASSERT_GT(records.size(), static_cast<size_t>(id));
  const ProgramRecord& record = *records[static_cast<size_t>(id)];
  EXPECT_EQ(record.id, id);
  EXPECT_EQ(record.runs, 2);
  EXPECT_EQ(record.num_nodes, 1);
  EXPECT_EQ(record.num_parameters, 2);
  EXPECT_EQ(record.num_outputs, 1);
  EXPECT_EQ(record.cause, "sync");
  EXPECT_GT(record.compile_seconds, 0);
  EXPECT_FALSE(record.from_disk_cache);
  EXPECT_EQ(record.argument_bytes, 8192);
  EXPECT_EQ(record.output_bytes, 4096);
  EXPECT_EQ(record.alias_bytes, 4096);
  EXPECT_GE(record.temp_bytes, 0);
}

TEST_F(ProgramUse, a_serialized_program_loads) {
  const std::string serialized = compile_program(add_spec(true))->serialize();
  ProgramSpec spec = add_spec(true);
  spec.stablehlo.clear();
  const Ref<Program> program = load_program(std::move(spec), serialized);
  EXPECT_TRUE(program->record().from_disk_cache);
  for (int device = 0; device < Runtime::get().num_devices(); ++device) {
    const Ref<DeviceValue> x = upload(1, device);
    EXPECT_EQ(first(program->run(std::vector{x, upload(2, device)}, device)[0]), 3);
    EXPECT_TRUE(x->is_donated());
  }
}

TEST_F(ProgramUse, measures_compilations_and_executions) {
  const int64_t compiles = metric("CompileTime").snapshot().total_samples;
  const int64_t executions = metric("ExecuteTime").snapshot().total_samples;
  const Ref<Program> program = compile_program(add_spec(false));
  for (int i = 0; i < 3; ++i) program->run(std::vector{upload(1), upload(2)}, 0);
  Runtime::get().wait_all(0);
  EXPECT_EQ(metric("CompileTime").snapshot().total_samples - compiles, 1);
  EXPECT_EQ(metric("ExecuteTime").snapshot().total_samples - executions, 3);
}

TEST_F(ProgramUse, a_failed_compilation_harms_nothing) {
  const size_t records = list_program_records().size();
  ProgramSpec spec = add_spec(false);
  spec.stablehlo = "module @broken {";
  EXPECT_THROW(compile_program(spec), Error);
  EXPECT_EQ(list_program_records().size(), records);
  EXPECT_EQ(first(compile_program(add_spec(false))->run(std::vector{upload(1), upload(2)}, 0)[0]), 3);
}

TEST_F(ProgramUse, wrong_arguments_are_a_bug) {
  const Ref<Program> program = compile_program(add_spec(false));
  EXPECT_THROW(program->run(std::vector{upload(1)}, 0), Error);
  if (Runtime::get().num_devices() > 1) {
    EXPECT_THROW(program->run(std::vector{upload(1), upload(1, 1)}, 0), Error);
  }
}

TEST_F(ProgramUse, nan_survives_maximum) {
  if (!Runtime::get().is_cpu()) GTEST_SKIP() << "not XLA CPU";
  ProgramSpec spec = add_spec(false);
  spec.stablehlo.replace(spec.stablehlo.find("stablehlo.add"), 13, "stablehlo.maximum");
  const Ref<Program> program = compile_program(spec);
  EXPECT_TRUE(std::isnan(first(program->run(std::vector{upload(std::nanf("")), upload(2)}, 0)[0])));
  EXPECT_TRUE(std::isnan(first(program->run(std::vector{upload(2), upload(std::nanf(""))}, 0)[0])));
}

TEST_F(ProgramUse, runs_from_several_threads) {
  const Ref<Program> program = compile_program(add_spec(true));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const int device = t % Runtime::get().num_devices();
      const Ref<DeviceValue> one = upload(1, device);
      Ref<DeviceValue> sum = upload(0, device);
      for (int i = 0; i < 50; ++i) sum = program->run(std::vector{sum, one}, device)[0];
      if (first(sum) != 50) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

#ifdef TORCH_PJRT_HAVE_FFI
namespace ffi = xla::ffi;

ffi::Error always_fail(ffi::Buffer<ffi::F32>, ffi::ResultBuffer<ffi::F32>) {
  return ffi::Error(ffi::ErrorCode::kInvalidArgument, "always_fail: as it was asked");
}
XLA_FFI_DEFINE_HANDLER(kAlwaysFail, always_fail,
                       ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// Enough work before the failing call that the plugin does not run the program during the launch.
ProgramSpec failing_spec() {
  ProgramSpec spec;
  spec.stablehlo = "module @failing { func.func public @main(%x0: tensor<256x256xf32>) -> tensor<256x256xf32> {\n";
  for (int i = 0; i < 20; ++i) {
    spec.stablehlo += concat("  %x", i + 1, " = stablehlo.dot_general %x", i, ", %x0, contracting_dims = [1] x [0] : ",
                             "(tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>\n");
  }
  spec.stablehlo +=
      "  %y = stablehlo.custom_call @tp_test_always_fail(%x20) {api_version = 4 : i32, backend_config = {}}\n"
      "      : (tensor<256x256xf32>) -> tensor<256x256xf32>\n  return %y : tensor<256x256xf32>\n} }";
  spec.parameters = spec.outputs = {{DType::kF32, {256, 256}}};
  spec.cause = "item at train.py:12";
  return spec;
}

TEST_F(ProgramUse, an_asynchronous_error_surfaces_at_the_wait) {
  Runtime& runtime = Runtime::get();
  if (!runtime.is_cpu() || !pjrt::has_ffi(runtime.client().api())) GTEST_SKIP() << "no host custom calls";
  pjrt::register_ffi_handler(runtime.client().api(), "tp_test_always_fail", "HOST",
                             reinterpret_cast<void*>(kAlwaysFail));
  Ref<Program> program;
  try {
    program = compile_program(failing_spec());
  } catch (const Error& error) {
    GTEST_SKIP() << "the FFI headers are too new for the plugin: " << error.what();
  }
  const std::vector<float> data(256 * 256, 1.0f / 256);
  const Ref<DeviceValue> x = runtime.upload(data.data(), {DType::kF32, {256, 256}}, 0);
  const auto expect_error = [](const auto& wait) {
    try {
      wait();
      FAIL() << "no error";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(message.find("as it was asked"), std::string::npos) << message;
      EXPECT_NE(message.find("train.py:12"), std::string::npos) << message;
    }
  };
  const auto failed = program->run(std::vector{x}, 0);
  expect_error([&] { runtime.wait_all(0); });
  EXPECT_NO_THROW(runtime.wait_all(0));
  expect_error([&] { first(failed[0]); });
  expect_error([&] { failed[0]->await(); });
  try {
    first(failed[0]);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("was lost with that program"), std::string::npos) << error.what();
  }
  // A download that has reported the error leaves none for the next wait.
  const auto again = program->run(std::vector{x}, 0);
  expect_error([&] { first(again[0]); });
  runtime.in_flight(0).drain();
  runtime.in_flight(0).forget_error();
  EXPECT_EQ(first(x), 1.0f / 256);
}
#endif

}  // namespace
}  // namespace torch_pjrt
