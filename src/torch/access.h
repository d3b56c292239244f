// Reading a strided view from the value of its storage, and writing one into it.
//
// Callers hold lazy::mutex(); no value may be kept after it is released, except in a buffer.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "lazy/buffer.h"
#include "lazy/node.h"
#include "lazy/signature.h"

namespace torch_pjrt {

inline Dims to_dims(at::IntArrayRef values) { return {values.begin(), values.end()}; }

// The tensor's elements: a value of the tensor's dtype and sizes, conj and neg bits applied.
lazy::Value read(const at::Tensor& tensor);

// Replaces the tensor's elements by `value`, which has its dtype and sizes. Every tensor that shares the storage sees
// it.
void write(const at::Tensor& tensor, lazy::Value value);

// Makes `buffer`'s value fit a new size; new bytes are zero.
void resize_value(lazy::Buffer& buffer, size_t size_bytes);

// `value` broadcast to `dims` and converted to `dtype`; itself where nothing changes.
lazy::Value convert(lazy::Value value, const Dims& dims, DType dtype);

// Records an operator of our own ("xla::transpose"): `attributes` are (name, value) after the tensor arguments, which
// are named `tensor_names`.
using NamedAttributes = std::vector<std::pair<std::string_view, lazy::Attribute>>;
lazy::Value record_internal(lazy::Graph& graph, std::string_view name, std::vector<std::string_view> tensor_names,
                            std::vector<lazy::Value> operands, const NamedAttributes& attributes,
                            const TensorType& output, std::span<const int64_t> starts = {});

}  // namespace torch_pjrt
