// An immutable value that lives on a device; src/exec derives the class that holds the PJRT buffers.
#pragma once

#include "base/ref.h"
#include "base/tensor_type.h"

namespace torch_pjrt::lazy {

class DeviceData : public RefCounted {
 public:
  DeviceData(TensorType type, int device) : type_(std::move(type)), device_(device) {}
  const TensorType& type() const { return type_; }
  // Ordinal among the client's addressable devices.
  int device() const { return device_; }

 private:
  TensorType type_;
  int device_;
};

}  // namespace torch_pjrt::lazy
