// What this project relies on, checked on every plugin of TORCH_PJRT_TEST_PLUGINS (paths, colon separated).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "base/env.h"
#include "pjrt/client.h"
#include "pjrt/discovery.h"

#ifdef TORCH_PJRT_HAVE_FFI
#include "pjrt/ffi.h"
#include "xla/ffi/api/ffi.h"
#endif

namespace torch_pjrt::pjrt {
namespace {

constexpr int kNumDevices = 2;

std::vector<std::string> test_plugins() {
  std::vector<std::string> paths;
  std::stringstream list(env_string("TORCH_PJRT_TEST_PLUGINS").value_or(""));
  for (std::string path; std::getline(list, path, ':');) {
    if (!path.empty()) paths.push_back(path);
  }
  // One parameter that is skipped, so that the report says that nothing was tested.
  if (paths.empty()) paths.emplace_back();
  return paths;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name.empty() ? "none" : name;
}

// One client for each plugin and process: plugins start threads that are not meant to be stopped.
Client& client_of(const std::string& path) {
  static auto& clients = *new std::map<std::string, std::unique_ptr<Client>>;
  std::unique_ptr<Client>& client = clients[path];
  if (client == nullptr) {
    NamedValues options;
    if (is_cpu({std::filesystem::path(path).filename(), path})) {
      options.emplace_back("cpu_device_count", int64_t{kNumDevices});
    }
    client = std::make_unique<Client>(Plugin::load(path), options);
  }
  return *client;
}

CompileOptions default_options(const Client& client) {
  CompileOptions options;
  if (client.platform_name() == "cpu") {
    options.overrides = {{"xla_cpu_enable_fast_math", false}, {"xla_cpu_enable_fast_min_max", false}};
  }
  return options;
}

class Conformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam().empty()) GTEST_SKIP() << "TORCH_PJRT_TEST_PLUGINS names no plugin";
  }

  Client& client() { return client_of(GetParam()); }
  const Device& device(size_t i = 0) { return client().addressable_devices()[i]; }
  Executable compile(std::string_view text) { return client().compile(text, default_options(client())); }
  void require_two_devices() {
    if (client().addressable_devices().size() < kNumDevices) GTEST_SKIP() << "the plugin has one device";
  }

  template <typename T>
  Buffer upload(const std::vector<T>& values, DType dtype, const Dims& dims) {
    return client().to_device(values.data(), {dtype, dims}, device());
  }
  Buffer upload(const std::vector<float>& values) {
    return upload(values, DType::kF32, {static_cast<int64_t>(values.size())});
  }
  static std::vector<float> download(const Buffer& buffer) {
    std::vector<float> values(static_cast<size_t>(buffer.type().numel()));
    buffer.to_host(values.data(), values.size() * sizeof(float)).await();
    return values;
  }
  template <typename... Buffers>
  static std::vector<Buffer> run(const Executable& executable, const Buffers&... buffers) {
    const std::vector<const Buffer*> arguments{&buffers...};
    return executable.execute(arguments);
  }
};

INSTANTIATE_TEST_SUITE_P(Plugins, Conformance, testing::ValuesIn(test_plugins()), test_name);

constexpr std::string_view kAdd = R"(
module @add {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
})";

// x -> x + x, with the given attribute on the parameter.
std::string double_program(const std::string& attribute) {
  return "module @double { func.func public @main(%x: tensor<1024xf32>" + attribute +
         ") -> tensor<1024xf32> {\n  %0 = stablehlo.add %x, %x : tensor<1024xf32>\n  return %0 : tensor<1024xf32>\n} }";
}

// `count` products of 512x512 matrices, each of which needs the one before.
std::string slow_program(int count) {
  std::string text = "module @slow { func.func public @main(%x0: tensor<512x512xf32>) -> tensor<512x512xf32> {\n";
  for (int i = 0; i < count; ++i) {
    text += concat("  %x", i + 1, " = stablehlo.dot_general %x", i, ", %x0, contracting_dims = [1] x [0] : ",
                   "(tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>\n");
  }
  return text + concat("  return %x", count, " : tensor<512x512xf32>\n} }");
}

TEST_P(Conformance, says_what_it_is) {
  const Api api = client().api();
  EXPECT_EQ(api.major_version(), 0);
  EXPECT_GE(api.minor_version(), 54);
  EXPECT_FALSE(client().platform_name().empty());
  EXPECT_EQ(&Plugin::load(GetParam()), &client().plugin());
  EXPECT_TRUE(client().plugin().attribute("stablehlo_current_version").has_value());
  EXPECT_FALSE(client().plugin().attribute("no_such_attribute").has_value());
}

TEST_P(Conformance, has_devices) {
  const std::vector<Device>& devices = client().addressable_devices();
  ASSERT_FALSE(devices.empty());
  if (client().platform_name() == "cpu") {
    EXPECT_EQ(devices.size(), size_t{kNumDevices});
  }
  EXPECT_EQ(client().devices().size(), devices.size());
  for (const Device& device : devices) {
    EXPECT_TRUE(device.is_addressable());
    EXPECT_EQ(device.process_index(), client().process_index());
    EXPECT_FALSE(device.kind().empty());
    EXPECT_FALSE(device.debug_string().empty());
  }
  if (devices.size() > 1) {
    EXPECT_NE(devices[0].id(), devices[1].id());
  }
}

TEST_P(Conformance, refuses_unknown_client_option) {
  if (client().platform_name() != "cpu") GTEST_SKIP() << "a second client would compete for the device";
  const NamedValues options{{"no_such_option", int64_t{1}}};
  try {
    const Client other(client().plugin(), options);
    SUCCEED() << "accepted and ignored";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no_such_option"), std::string::npos) << error.what();
  }
}

TEST_P(Conformance, transfers_every_dtype) {
  std::mt19937 random(1);
  for (int code = 0; code <= static_cast<int>(DType::kF8E5M2); ++code) {
    const auto dtype = static_cast<DType>(code);
    for (const Dims& dims : {Dims{}, Dims{0}, Dims{3, 0, 2}, Dims{5}, Dims{3, 2, 4}}) {
      const TensorType type{dtype, dims};
      SCOPED_TRACE(type.mlir());
      std::vector<uint8_t> sent(type.size_bytes());
      for (uint8_t& byte : sent) byte = static_cast<uint8_t>(dtype == DType::kPred ? random() & 1 : random());
      const Buffer buffer = client().to_device(sent.data(), type, device());
      EXPECT_EQ(buffer.type(), type);
      EXPECT_EQ(buffer.device(), device());
      EXPECT_GE(buffer.on_device_size_bytes(), type.size_bytes());
      std::vector<uint8_t> received(sent.size(), 0xaa);
      buffer.to_host(received.data(), received.size()).await();
      EXPECT_EQ(received, sent);
    }
  }
}

TEST_P(Conformance, computes_on_every_dtype) {
  for (int code = 0; code <= static_cast<int>(DType::kF8E5M2); ++code) {
    const TensorType type{static_cast<DType>(code), {4}};
    SCOPED_TRACE(type.mlir());
    const std::string text =
        concat("module @m { func.func public @main(%x: ", type.mlir(), ") -> ", type.mlir(),
               " {\n  %0 = stablehlo.reverse %x, dims = [0] : ", type.mlir(), "\n  return %0 : ", type.mlir(), "\n} }");
    const Executable executable = compile(text);
    std::vector<uint8_t> sent(type.size_bytes());
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<uint8_t>(type.dtype == DType::kPred ? i % 2 : i + 1);
    const std::vector<Buffer> outputs = run(executable, client().to_device(sent.data(), type, device()));
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].type(), type);
    std::vector<uint8_t> received(sent.size());
    outputs[0].to_host(received.data(), received.size()).await();
    const size_t item = size_bytes(type.dtype);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(
          std::equal(sent.begin() + i * item, sent.begin() + (i + 1) * item, received.begin() + (3 - i) * item));
    }
  }
}

TEST_P(Conformance, copies_host_memory_before_the_upload_returns) {
  for (const size_t count : {size_t{1}, size_t{4}, size_t{1} << 20}) {
    std::vector<float> values(count, 1.0f);
    const Buffer buffer = upload(values);
    std::fill(values.begin(), values.end(), 2.0f);
    EXPECT_EQ(download(buffer), std::vector<float>(count, 1.0f));
  }
}

TEST_P(Conformance, releases_aliased_host_memory) {
  constexpr size_t kCount = 4096;
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  const std::unique_ptr<float, Free> memory(static_cast<float*>(std::aligned_alloc(64, kCount * sizeof(float))));
  std::fill_n(memory.get(), kCount, 3.0f);
  std::promise<void> released;
  {
    Event done;
    const Buffer buffer =
        client().to_device(memory.get(), {DType::kF32, {kCount}}, device(), HostMemory::kAliasImmutable, &done);
    EXPECT_EQ(download(buffer), std::vector<float>(kCount, 3.0f));
    if (client().platform_name() == "cpu") {
      EXPECT_EQ(buffer.unsafe_pointer(), memory.get());
      EXPECT_FALSE(done.is_ready());
    }
    std::move(done).on_ready([&](const Error* error) {
      EXPECT_EQ(error, nullptr);
      released.set_value();
    });
  }
  EXPECT_EQ(released.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

TEST_P(Conformance, runs_a_program) {
  const Executable executable = compile(kAdd);
  EXPECT_EQ(executable.num_outputs(), 1u);
  EXPECT_EQ(executable.output_types(), (std::vector<TensorType>{{DType::kF32, {4}}}));
  EXPECT_NE(executable.name().find("add"), std::string::npos) << executable.name();
  const std::vector<Buffer> outputs = run(executable, upload({1, 2, 3, 4}), upload({10, 20, 30, 40}));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(download(outputs[0]), (std::vector<float>{11, 22, 33, 44}));
}

TEST_P(Conformance, runs_programs_without_parameters_or_outputs) {
  const Executable constant = compile(
      "module @m { func.func public @main() -> tensor<f32> {\n"
      "  %0 = stablehlo.constant dense<7.0> : tensor<f32>\n  return %0 : tensor<f32>\n} }");
  EXPECT_EQ(download(run(constant)[0]), std::vector<float>{7});
  const Executable sink = compile("module @m { func.func public @main(%x: tensor<4xf32>) {\n  return\n} }");
  EXPECT_TRUE(run(sink, upload({1, 2, 3, 4})).empty());
}

TEST_P(Conformance, returns_an_input_as_an_output) {
  const Executable executable = compile(
      "module @m { func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n"
      "  return %x, %x : tensor<4xf32>, tensor<4xf32>\n} }");
  const Buffer input = upload({1, 2, 3, 4});
  const std::vector<Buffer> outputs = run(executable, input);
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(download(outputs[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(download(outputs[1]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(download(input), (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(Conformance, executes_asynchronously) {
  const Executable executable = compile(slow_program(30));
  const std::vector<float> values(512 * 512, 1.0f / 512);
  const Buffer input = upload(values, DType::kF32, {512, 512});
  Event done;
  const Buffer* argument = &input;
  const std::vector<Buffer> outputs = executable.execute({&argument, 1}, nullptr, &done);
  EXPECT_FALSE(done.is_ready());
  EXPECT_FALSE(outputs[0].ready_event().is_ready());
  std::promise<bool> called;
  outputs[0].ready_event().on_ready([&](const Error* error) { called.set_value(error == nullptr); });
  done.await();
  EXPECT_TRUE(done.is_ready());
  EXPECT_TRUE(called.get_future().get());
  EXPECT_NEAR(download(outputs[0])[0], 1.0f / 512, 1e-5f);
}

TEST_P(Conformance, uses_an_output_before_it_exists) {
  const Executable slow = compile(slow_program(10));
  const Buffer input = upload(std::vector<float>(512 * 512, 1.0f / 512), DType::kF32, {512, 512});
  std::vector<Buffer> first = run(slow, input);
  const std::vector<Buffer> second = run(slow, first[0]);
  first.clear();
  EXPECT_NEAR(download(second[0])[0], 1.0f / 512, 1e-5f);
}

TEST_P(Conformance, donation_reuses_memory) {
  for (const char* attribute : {" {tf.aliasing_output = 0 : i32}", " {jax.buffer_donor = true}"}) {
    SCOPED_TRACE(attribute);
    const Executable executable = compile(double_program(attribute));
    const auto stats = executable.memory_stats();
    ASSERT_TRUE(stats.has_value());
    EXPECT_EQ(stats->alias_bytes, 4096);
    const Buffer input = upload(std::vector<float>(1024, 1.0f));
    const void* address = client().platform_name() == "cpu" ? input.unsafe_pointer() : nullptr;
    const std::vector<Buffer> outputs = run(executable, input);
    EXPECT_TRUE(input.is_deleted());
    EXPECT_EQ(download(outputs[0]), std::vector<float>(1024, 2.0f));
    if (address != nullptr) {
      EXPECT_EQ(outputs[0].unsafe_pointer(), address);
    }
    EXPECT_THROW(input.ready_event().await(), Error);
  }
}

TEST_P(Conformance, keeps_what_is_not_donated) {
  const Executable plain = compile(double_program(""));
  EXPECT_EQ(plain.memory_stats()->alias_bytes, 0);
  const Buffer input = upload(std::vector<float>(1024, 1.0f));
  EXPECT_EQ(download(run(plain, input)[0]), std::vector<float>(1024, 2.0f));
  EXPECT_FALSE(input.is_deleted());
  // A program that may donate, told not to this time.
  const Executable donating = compile(double_program(" {tf.aliasing_output = 0 : i32}"));
  const Buffer* argument = &input;
  const int64_t keep = 0;
  const std::vector<Buffer> outputs = donating.execute({&argument, 1}, nullptr, nullptr, {&keep, 1});
  EXPECT_EQ(download(outputs[0]), std::vector<float>(1024, 2.0f));
  EXPECT_FALSE(input.is_deleted());
  EXPECT_EQ(download(input), std::vector<float>(1024, 1.0f));
}

TEST_P(Conformance, donating_one_buffer_twice_is_refused) {
  const Executable executable = compile(R"(
module @m {
  func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 : i32})
      -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    %1 = stablehlo.subtract %a, %b : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
})");
  const Buffer input = upload({1, 2, 3, 4});
  EXPECT_THROW(run(executable, input, input), Error);
  // The client survives.
  EXPECT_EQ(download(run(compile(kAdd), upload({1, 2, 3, 4}), upload({1, 1, 1, 1}))[0]),
            (std::vector<float>{2, 3, 4, 5}));
}

TEST_P(Conformance, donates_aliased_host_memory_without_writing_to_it) {
  alignas(64) static float memory[1024];
  std::fill_n(memory, 1024, 5.0f);
  const Executable executable = compile(double_program(" {tf.aliasing_output = 0 : i32}"));
  Event done;
  const Buffer input = client().to_device(memory, {DType::kF32, {1024}}, device(), HostMemory::kAliasImmutable, &done);
  const std::vector<Buffer> outputs = run(executable, input);
  EXPECT_EQ(download(outputs[0]), std::vector<float>(1024, 10.0f));
  EXPECT_EQ(memory[0], 5.0f);
  EXPECT_EQ(memory[1023], 5.0f);
}

TEST_P(Conformance, refuses_an_argument_of_the_wrong_size) {
  const Executable executable = compile(kAdd);
  const Buffer right = upload({1, 2, 3, 4});
  const Buffer wrong = upload({1, 2});
  try {
    run(executable, right, wrong)[0].ready_event().await();
    FAIL() << "ran with an argument of half the size";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("PJRT_"), std::string::npos) << error.what();
  }
}

TEST_P(Conformance, a_serialized_executable_runs) {
  std::string serialized;
  {
    const Executable original = compile(double_program(" {tf.aliasing_output = 0 : i32}"));
    serialized = original.serialize();
  }
  ASSERT_FALSE(serialized.empty());
  const Executable loaded = client().deserialize(serialized);
  const Buffer input = upload(std::vector<float>(1024, 4.0f));
  EXPECT_EQ(download(run(loaded, input)[0]), std::vector<float>(1024, 8.0f));
  EXPECT_TRUE(input.is_deleted());
}

TEST_P(Conformance, refuses_to_load_what_is_no_executable) {
  EXPECT_THROW(client().deserialize("this is no executable"), Error);
  EXPECT_THROW(client().deserialize(""), Error);
}

TEST_P(Conformance, reports_memory_of_a_program) {
  // Of the two intermediate products at least one needs memory of its own.
  const Executable executable = compile(slow_program(3));
  const auto stats = executable.memory_stats();
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(stats->argument_bytes, 512 * 512 * 4);
  EXPECT_EQ(stats->output_bytes, 512 * 512 * 4);
  EXPECT_EQ(stats->alias_bytes, 0);
  EXPECT_GE(stats->temp_bytes, 512 * 512 * 4);
  EXPECT_GE(stats->generated_code_bytes, 0);
}

TEST_P(Conformance, gives_the_optimized_program) {
  const Executable::OptimizedProgram program = compile(kAdd).optimized_program();
  EXPECT_TRUE(program.format == "hlo" || program.format == "hlo_with_config" || program.format == "mlir")
      << program.format;
  EXPECT_FALSE(program.code.empty());
}

TEST_P(Conformance, analyses_cost_or_says_nothing) {
  const NamedValues cost = compile(slow_program(1)).cost_analysis();
  for (const auto& [name, value] : cost) {
    if (name == "flops") {
      EXPECT_GE(std::get<float>(value), 2.0f * 512 * 512 * 512);
    }
  }
}

TEST_P(Conformance, compile_errors_say_what_is_wrong) {
  const auto message = [&](std::string_view text) -> std::string {
    try {
      compile(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "compiled";
  };
  EXPECT_TRUE(message("this is no program").starts_with("PJRT_Client_Compile: "));
  const std::string mismatch = message(
      "module @m { func.func public @main(%a: tensor<4xf32>, %b: tensor<3xf32>) -> tensor<4xf32> {\n"
      "  %0 = stablehlo.add %a, %b : tensor<4xf32>\n  return %0 : tensor<4xf32>\n} }");
  EXPECT_TRUE(mismatch.starts_with("PJRT_Client_Compile: ")) << mismatch;
  EXPECT_NE(mismatch.find("2:26"), std::string::npos) << "line and column are missing: " << mismatch;
}

TEST_P(Conformance, maximum_and_minimum_propagate_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // Eight elements: XLA CPU's vectorised code is what drops NaN.
  const Executable executable = compile(R"(
module @m {
  func.func public @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<f32>) {
    %0 = stablehlo.maximum %a, %b : tensor<8xf32>
    %1 = stablehlo.minimum %a, %b : tensor<8xf32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [0]
        : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<f32>
  }
})");
  const std::vector<Buffer> outputs =
      run(executable, upload({1, nan, 3, nan, 5, 6, 7, 8}), upload({nan, 2, 3, nan, 1, 1, 1, 1}));
  for (const size_t output : {0, 1}) {
    const std::vector<float> values = download(outputs[output]);
    EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]) && std::isnan(values[3]));
    EXPECT_EQ(values[2], 3);
    EXPECT_EQ(values[4], output == 0 ? 5 : 1);
  }
  EXPECT_TRUE(std::isnan(download(outputs[2])[0]));
}

TEST_P(Conformance, refuses_or_ignores_an_unknown_flag) {
  CompileOptions options = default_options(client());
  options.overrides.emplace_back("xla_no_such_flag", true);
  try {
    client().compile(kAdd, options);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("xla_no_such_flag"), std::string::npos) << error.what();
  }
  // Every kind of value is understood.
  options = default_options(client());
  options.overrides.emplace_back("xla_backend_optimization_level", int64_t{1});
  options.overrides.emplace_back("xla_dump_to", std::string());
  EXPECT_EQ(client().compile(kAdd, options).num_outputs(), 1u);
}

TEST_P(Conformance, optimization_barrier_is_the_identity) {
  const Executable executable = compile(R"(
module @m {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
    %0:2 = stablehlo.optimization_barrier %a, %b : tensor<4xf32>, tensor<i32>
    return %0#0, %0#1 : tensor<4xf32>, tensor<i32>
  }
})");
  const Buffer integer = upload(std::vector<int32_t>{42}, DType::kS32, {});
  const std::vector<Buffer> outputs = run(executable, upload({1, 2, 3, 4}), integer);
  EXPECT_EQ(download(outputs[0]), (std::vector<float>{1, 2, 3, 4}));
  int32_t received = 0;
  outputs[1].to_host(&received, sizeof received).await();
  EXPECT_EQ(received, 42);
}

TEST_P(Conformance, understands_chlo) {
  const Executable executable = compile(R"(
module @m {
  func.func public @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>, tensor<2xi32>) {
    %0 = chlo.erf %a : tensor<4xf32> -> tensor<4xf32>
    %1, %2 = chlo.top_k(%a, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
    return %0, %1, %2 : tensor<4xf32>, tensor<2xf32>, tensor<2xi32>
  }
})");
  const std::vector<Buffer> outputs = run(executable, upload({0, 3, 1, 2}));
  EXPECT_NEAR(download(outputs[0])[2], std::erf(1.0f), 1e-6f);
  EXPECT_EQ(download(outputs[1]), (std::vector<float>{3, 2}));
}

TEST_P(Conformance, exhausted_memory_leaves_the_client_usable) {
  // 2^46 bytes, which no machine grants.
  const std::string text =
      "module @m { func.func public @main(%x: tensor<f64>) -> tensor<8796093022208xf64> {\n"
      "  %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f64>) -> tensor<8796093022208xf64>\n"
      "  return %0 : tensor<8796093022208xf64>\n} }";
  const double one = 1;
  const Buffer input = client().to_device(&one, {DType::kF64, {}}, device());
  try {
    const Executable executable = compile(text);
    run(executable, input)[0].ready_event().await();
    FAIL() << "64 TiB were granted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
  }
  EXPECT_EQ(download(run(compile(kAdd), upload({1, 2, 3, 4}), upload({1, 1, 1, 1}))[0]),
            (std::vector<float>{2, 3, 4, 5}));
}

TEST_P(Conformance, copies_between_devices) {
  require_two_devices();
  if (IsSkipped()) return;
  const Buffer here = upload({1, 2, 3, 4});
  const Buffer there = here.copy_to(device(1));
  EXPECT_EQ(there.device(), device(1));
  EXPECT_EQ(download(there), (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(Conformance, a_portable_program_runs_on_every_device) {
  require_two_devices();
  if (IsSkipped()) return;
  CompileOptions options = default_options(client());
  options.portable = true;
  const Executable executable = client().compile(double_program(" {tf.aliasing_output = 0 : i32}"), options);
  for (const Device& device : client().addressable_devices()) {
    const std::vector<float> ones(1024, 1.0f);
    const Buffer input = client().to_device(ones.data(), {DType::kF32, {1024}}, device);
    const Buffer* argument = &input;
    const std::vector<Buffer> outputs = executable.execute({&argument, 1}, &device);
    EXPECT_EQ(outputs[0].device(), device);
    EXPECT_EQ(download(outputs[0]), std::vector<float>(1024, 2.0f));
  }
}

TEST_P(Conformance, replicas_reduce_over_two_devices) {
  require_two_devices();
  if (IsSkipped()) return;
  CompileOptions options = default_options(client());
  options.num_replicas = 2;
  options.device_assignment = {device(1).id(), device(0).id()};
  const Executable executable = client().compile(R"(
module @m attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%x) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
})",
                                                 options);
  ASSERT_EQ(executable.devices(), (std::vector<Device>{device(1), device(0)}));
  std::vector<Buffer> inputs;
  std::vector<PJRT_Buffer*> raw;
  std::vector<PJRT_Buffer* const*> lists;
  for (const size_t i : {1, 0}) {
    const std::vector<float> values(4, static_cast<float>(i + 1));
    inputs.push_back(client().to_device(values.data(), {DType::kF32, {4}}, device(i)));
    raw.push_back(inputs.back().raw());
  }
  for (PJRT_Buffer* const& buffer : raw) lists.push_back(&buffer);
  std::vector<PJRT_Buffer*> outputs(2);
  PJRT_Buffer** const output_lists[] = {&outputs[0], &outputs[1]};
  Launch launch;
  launch.argument_lists = lists;
  launch.num_arguments = 1;
  executable.execute(launch, output_lists, nullptr);
  for (PJRT_Buffer* output : outputs) {
    EXPECT_EQ(download(Buffer(client().api(), output)), std::vector<float>(4, 3.0f));
  }
}

TEST_P(Conformance, is_used_from_several_threads) {
  const Executable executable = compile(kAdd);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto a = static_cast<float>(t * 100 + i);
        const std::vector<Buffer> outputs = run(executable, upload({a, a, a, a}), upload({1, 2, 3, 4}));
        if (download(outputs[0]) != std::vector<float>{a + 1, a + 2, a + 3, a + 4}) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

#ifdef TORCH_PJRT_HAVE_FFI
namespace ffi = xla::ffi;

ffi::Error triple(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> result) {
  for (size_t i = 0; i < x.element_count(); ++i) {
    if (x.typed_data()[i] < 0) return ffi::Error(ffi::ErrorCode::kInvalidArgument, "triple: a negative element");
    result->typed_data()[i] = 3 * x.typed_data()[i];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kTriple, triple, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

constexpr std::string_view kTripleProgram = R"(
module @m {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @tp_test_triple(%x) {api_version = 4 : i32, backend_config = {}}
        : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
})";

TEST_P(Conformance, custom_calls_run_registered_handlers) {
  if (client().platform_name() != "cpu") GTEST_SKIP() << "the handler reads host memory";
  if (!has_ffi(client().api())) GTEST_SKIP() << "the plugin has no FFI extension";
  register_ffi_handler(client().api(), "tp_test_triple", "HOST", reinterpret_cast<void*>(kTriple));
  std::unique_ptr<Executable> executable;
  try {
    executable = std::make_unique<Executable>(compile(kTripleProgram));
  } catch (const Error& error) {
    // The plugin drops handlers that were built for a newer FFI version than its own, and then does not know the
    // target.
    ASSERT_NE(std::string(error.what()).find("tp_test_triple"), std::string::npos) << error.what();
    GTEST_SKIP() << "handlers of FFI " << XLA_FFI_API_MAJOR << "." << XLA_FFI_API_MINOR
                 << " are too new for the plugin: " << error.what();
  }
  EXPECT_EQ(download(run(*executable, upload({1, 2, 3, 4}))[0]), (std::vector<float>{3, 6, 9, 12}));

  // An error surfaces at the call, which runs small programs itself, or at the wait; nothing else is harmed.
  const Buffer negative = upload({1, -2, 3, 4});
  try {
    download(run(*executable, negative)[0]);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("a negative element"), std::string::npos) << error.what();
  }
  EXPECT_EQ(download(negative), (std::vector<float>{1, -2, 3, 4}));
  EXPECT_EQ(download(run(*executable, upload({1, 1, 1, 1}))[0]), std::vector<float>(4, 3.0f));
}
#endif

}  // namespace
}  // namespace torch_pjrt::pjrt
