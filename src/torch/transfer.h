// Whole tensors between host and device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lazy/node.h"

namespace torch_pjrt {

// The device value of a contiguous CPU tensor. Returns before the transfer is done where the plugin allows; the
// tensor's memory may be reused at once.
lazy::Value upload(const at::Tensor& host, int device);
// The same of a tensor whose memory nobody else sees: the value may be that memory.
lazy::Value upload_owned(at::Tensor host, int device);

// Contiguous CPU copies of these xla tensors (undefined and CPU tensors are passed through). Cuts the graph when one of
// them is pending, and blocks.
// `reader` says for the record what reads them.
std::vector<at::Tensor> download(const std::vector<at::Tensor>& tensors, std::string_view reader = "a read");

}  // namespace torch_pjrt
