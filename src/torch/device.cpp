#include "torch/device.h"

#include <ATen/detail/XLAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <memory>

#include "exec/runtime.h"
#include "torch/api.h"

namespace torch_pjrt {

at::Generator make_generator(int device);

namespace {

thread_local int current = 0;

c10::Device device_of(int index) { return {c10::DeviceType::XLA, static_cast<c10::DeviceIndex>(index)}; }

// One when the client cannot start: the error shows at the first use of the device.
c10::DeviceIndex count_devices() noexcept {
  try {
    return static_cast<c10::DeviceIndex>(Runtime::device_count());
  } catch (const std::exception&) {
    return 1;
  }
}

// Executions of one device run in recording order, so a device has one stream and an event has nothing to record.
class XlaGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::XLA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const int previous = current;
    uncheckedSetDevice(device);
    return device_of(previous);
  }
  c10::Device getDevice() const override { return device_of(current); }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current = device.index();
  }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }

  // The autograd engine reads this at the first backward of the process, perhaps before any client exists.
  c10::DeviceIndex deviceCount() const noexcept override { return count_devices(); }

  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  // An event does not know its device.
  void synchronizeEvent(void*) const override {
    for (int device = 0; device < count_devices(); ++device) api::sync(device, /*wait=*/true);
  }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream& stream) const override { synchronizeDevice(stream.device_index()); }
  void synchronizeDevice(const c10::DeviceIndex device) const override { api::sync(device, /*wait=*/true); }
};

C10_REGISTER_GUARD_IMPL(XLA, XlaGuard);

struct XlaHooks final : at::XLAHooksInterface {
  void init() const override {}
  bool hasXLA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return api::is_client_started(); }
  std::string showConfig() const override { return api::plugin_description(); }
  c10::DeviceIndex deviceCount() const override { return count_devices(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(std::exchange(current, device));
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? getCurrentDevice() : exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device < 0 ? current : device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return make_generator(device < 0 ? current : device);
  }
};

// REGISTER_XLA_HOOKS would register the class under its own name; ATen's getXLAHooks asks for this one.
[[maybe_unused]] const bool hooks_registered = [] {
  at::XLAHooksRegistry()->Register("torch_xla::detail::XLAHooks", [] { return std::make_unique<XlaHooks>(); });
  return true;
}();

}  // namespace

int current_device() { return current; }
void set_current_device(int device) {
  TORCH_CHECK(device >= 0, "invalid xla device index ", device);
  current = device;
}

}  // namespace torch_pjrt
