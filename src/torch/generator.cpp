#include <ATen/ops/empty.h>
#include <c10/core/GeneratorImpl.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "torch/device.h"

namespace torch_pjrt {
namespace {

class XlaGenerator final : public c10::GeneratorImpl {
 public:
  explicit XlaGenerator(int device)
      : GeneratorImpl(c10::Device(c10::DeviceType::XLA, static_cast<c10::DeviceIndex>(device)),
                      c10::DispatchKeySet(c10::DispatchKey::XLA)) {}

  void set_current_seed(uint64_t seed) override { counter_ = {seed, 0}; }
  void set_offset(uint64_t offset) override { counter_.offset = offset; }
  uint64_t get_offset() const override { return counter_.offset; }
  uint64_t current_seed() const override { return counter_.seed; }

  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return counter_.seed;
  }

  // 16 bytes: seed, then offset, as CUDA's generator has them.
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    auto state = at::empty({static_cast<int64_t>(sizeof counter_)}, at::TensorOptions().dtype(at::kByte));
    std::memcpy(state.mutable_data_ptr(), &counter_, sizeof counter_);
    return state.getIntrusivePtr();
  }

  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<uint8_t>() && state.is_contiguous(),
                "RNG state must be a torch.ByteTensor");
    TORCH_CHECK(state.numel() == static_cast<int64_t>(sizeof counter_), "RNG state is wrong size");
    std::memcpy(&counter_, state.data(), sizeof counter_);
  }

  RandomCounter advance(uint64_t count) {
    const RandomCounter before = counter_;
    counter_.offset += count;
    return before;
  }

 private:
  GeneratorImpl* clone_impl() const override {
    auto* copy = new XlaGenerator(device().index());
    copy->counter_ = counter_;
    return copy;
  }

  RandomCounter counter_{c10::default_rng_seed_val, 0};
};

struct DefaultGenerators {
  std::mutex mutex;
  std::map<int, at::Generator> by_device;
  // A device asked for later starts from the last manual_seed.
  uint64_t seed = c10::default_rng_seed_val;
};

DefaultGenerators& defaults() {
  static auto* instance = new DefaultGenerators();
  return *instance;
}

}  // namespace

at::Generator make_generator(int device) { return at::make_generator<XlaGenerator>(device); }

const at::Generator& default_generator(int device) {
  auto& all = defaults();
  const std::lock_guard lock(all.mutex);
  auto [it, is_new] = all.by_device.try_emplace(device);
  if (is_new) {
    it->second = make_generator(device);
    it->second.set_current_seed(all.seed);
  }
  return it->second;
}

void manual_seed_all(uint64_t seed) {
  auto& all = defaults();
  const std::lock_guard lock(all.mutex);
  all.seed = seed;
  for (auto& [device, generator] : all.by_device) {
    const std::lock_guard generator_lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

RandomCounter advance(const std::optional<at::Generator>& generator, int device, uint64_t count) {
  const bool is_given = generator.has_value() && generator->defined();
  const at::Generator& used = is_given ? *generator : default_generator(device);
  TORCH_CHECK(used.device().type() == c10::DeviceType::XLA, "Expected a 'xla' device type for generator but found '",
              c10::DeviceTypeName(used.device().type(), true), "'");
  const std::lock_guard lock(used.unsafeGetGeneratorImpl()->mutex_);
  return static_cast<XlaGenerator*>(used.unsafeGetGeneratorImpl())->advance(count);
}

}  // namespace torch_pjrt
