#include "torch/access.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/type_hash.h"
#include "lazy/strided.h"
#include "ops/registry.h"
#include "torch/barrier.h"
#include "torch/memo.h"
#include "torch/scalar_type.h"
#include "torch/storage.h"

namespace torch_pjrt {
namespace {

void mix(Hash128& hash, const lazy::Attribute& attribute) {
  hash.mix(static_cast<uint64_t>(attribute.index()));
  if (const auto* value = std::get_if<int64_t>(&attribute)) hash.mix(*value);
  if (const auto* value = std::get_if<DType>(&attribute)) hash.mix(static_cast<uint64_t>(*value));
  if (const auto* value = std::get_if<Dims>(&attribute)) hash.mix_range(value->begin(), value->end());
}

// One object for each operator: its argument names are always the same ones.
const lazy::Schema* intern_schema(lazy::Schema schema) {
  static auto* schemas = new std::map<std::string, lazy::Schema, std::less<>>();
  const lazy::Schema& interned = schemas->try_emplace(schema.name, schema).first->second;
  TP_CHECK(interned.argument_names == schema.argument_names, schema.name, " is recorded with different arguments");
  return &interned;
}

lazy::Signature make_internal_signature(std::string_view name, const std::vector<std::string_view>& tensor_names,
                                        const std::vector<lazy::Value>& operands, const NamedAttributes& attributes,
                                        const TensorType& output, size_t num_starts, const Hash128& hash) {
  lazy::Schema schema;
  schema.name = name;
  lazy::Signature signature;
  signature.entry = find_op(name);
  TP_CHECK(signature.entry != nullptr, "no lowering for ", name);
  for (size_t i = 0; i < operands.size(); ++i) {
    schema.argument_names.emplace_back(tensor_names[i]);
    lazy::TensorRef ref;
    ref.source = lazy::TensorRef::Source::kOperand;
    ref.index = static_cast<uint32_t>(i);
    ref.dtype = operands[i].type().dtype;
    lazy::Argument argument;
    argument.kind = lazy::Argument::Kind::kTensor;
    argument.tensors.push_back(ref);
    signature.arguments.push_back(std::move(argument));
    signature.operands.push_back(operands[i].type());
  }
  for (const auto& [attribute_name, value] : attributes) {
    schema.argument_names.emplace_back(attribute_name);
    lazy::Argument argument;
    argument.attribute = value;
    signature.arguments.push_back(std::move(argument));
  }
  schema.argument_names.emplace_back("starts");
  signature.schema = intern_schema(std::move(schema));
  lazy::Argument starts;
  starts.kind = lazy::Argument::Kind::kScalarList;
  for (size_t i = 0; i < num_starts; ++i) {
    starts.scalars.push_back({lazy::ScalarKind::kInt, static_cast<uint32_t>(i)});
    signature.slot_is_int.push_back(true);
  }
  signature.arguments.push_back(std::move(starts));
  signature.outputs.push_back({output, row_major_strides(output.dims)});
  signature.hash = hash;
  return signature;
}

// What a stored value is to the rematerialisation region being recorded, if there is one.
lazy::Value admit(const lazy::Value& value) {
  if (!value) return value;
  lazy::RematRegion& region = value.node()->graph().remat_region();
  return region.is_active() ? region.admit(value, &record_barrier) : value;
}

lazy::Value flatten(lazy::Value value) {
  if (value.type().rank() == 1) return value;
  lazy::Graph& graph = value.node()->graph();
  const TensorType type{value.type().dtype, {value.type().numel()}};
  return record_internal(graph, "xla::reshape", {"self"}, {std::move(value)}, {{"dims", type.dims}}, type);
}

// The buffer's value as row-major memory of `dtype` elements.
lazy::Value physical(lazy::Buffer& buffer, DType dtype) {
  const int64_t numel = static_cast<int64_t>(buffer.size_bytes() / size_bytes(dtype));
  lazy::Value value = admit(buffer.value());
  if (!value) return record_internal(buffer.graph(), "xla::zeros", {}, {}, {}, {dtype, {numel}});
  if (const lazy::Layout* layout = buffer.layout()) {
    TensorType type = value.type();
    Dims dims;
    for (const int64_t dim : layout->physical_order) dims.push_back(type.dims[static_cast<size_t>(dim)]);
    type.dims = dims;
    value = record_internal(buffer.graph(), "xla::transpose", {"self"}, {value},
                            {{"permutation", layout->physical_order}}, type);
  }
  if (value.type().dtype != dtype) {
    value = record_internal(buffer.graph(), "xla::bitcast", {"self"}, {flatten(std::move(value))}, {{"dtype", dtype}},
                            {dtype, {numel}});
  }
  return value;
}

// The whole storage as the tensor sees it: nothing to compute.
bool matches(const at::Tensor& tensor, const lazy::Buffer& buffer, DType dtype) {
  const lazy::Value& value = buffer.value();
  if (!value || tensor.storage_offset() != 0 || value.type().dtype != dtype) return false;
  const Dims& dims = value.type().dims;
  const auto sizes = tensor.sizes();
  if (!std::equal(sizes.begin(), sizes.end(), dims.begin(), dims.end())) return false;
  if (buffer.layout() == nullptr) return tensor.is_contiguous();
  const auto strides = tensor.strides();
  return std::equal(strides.begin(), strides.end(), buffer.layout()->strides.begin(), buffer.layout()->strides.end());
}

// A storage may have been made smaller, or freed, under a tensor. The words are those of set_.
void check_in_storage(const at::Tensor& tensor, const lazy::Buffer& buffer) {
  const size_t needed = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(),
                                                         static_cast<size_t>(tensor.storage_offset()));
  TORCH_CHECK(needed <= buffer.size_bytes(), "xla: sizes ", tensor.sizes(), ", strides ", tensor.strides(),
              ", storage offset ", tensor.storage_offset(), ", and itemsize ", tensor.itemsize(),
              " requiring a storage size of ", needed, " are out of bounds for storage of size ", buffer.size_bytes());
}

lazy::Value read_strided(const at::Tensor& tensor, lazy::Buffer& buffer, DType dtype) {
  const TensorType output{dtype, to_dims(tensor.sizes())};
  check_in_storage(tensor, buffer);
  if (!buffer.value() || output.numel() == 0) {
    return record_internal(buffer.graph(), "xla::zeros", {}, {}, {}, output);
  }
  lazy::Value base = physical(buffer, dtype);
  const auto& plan = lazy::plan_for(base.type().dims, tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (plan.is_identity) return base;
  std::vector<int64_t> starts(static_cast<size_t>(plan.num_starts));
  lazy::starts(plan, tensor.storage_offset(), starts.data());
  return record_internal(buffer.graph(), "xla::strided_read", {"self"}, {std::move(base)},
                         {{"sizes", output.dims}, {"strides", to_dims(tensor.strides())}, {"variant", plan.variant}},
                         output, starts);
}

bool covers_storage(const at::Tensor& tensor, const lazy::Buffer& buffer) {
  return tensor.storage_offset() == 0 &&
         static_cast<size_t>(tensor.numel()) * tensor.itemsize() == buffer.size_bytes() &&
         (tensor.is_contiguous() || tensor.is_non_overlapping_and_dense());
}

}  // namespace

lazy::Value record_internal(lazy::Graph& graph, std::string_view name, std::vector<std::string_view> tensor_names,
                            std::vector<lazy::Value> operands, const NamedAttributes& attributes,
                            const TensorType& output, std::span<const int64_t> starts) {
  static auto* signatures = new Memo<lazy::Signature>();
  Hash128 hash;
  hash.mix(name);
  for (const lazy::Value& operand : operands) mix(hash, operand.type());
  for (const auto& [attribute_name, value] : attributes) mix(hash, value);
  mix(hash, output);
  hash.mix(static_cast<uint64_t>(starts.size()));
  const lazy::Signature* signature = signatures->find(hash);
  if (signature == nullptr) {
    signature = &signatures->insert(hash, std::make_unique<lazy::Signature>(make_internal_signature(
                                              name, tensor_names, operands, attributes, output, starts.size(), hash)));
  }
  static_assert(sizeof(int64_t) == sizeof(uint64_t));
  const std::span<const uint64_t> slots(reinterpret_cast<const uint64_t*>(starts.data()), starts.size());
  return {graph.record(*signature, operands, slots), 0};
}

lazy::Value read(const at::Tensor& tensor) {
  lazy::Buffer& buffer = buffer_of(tensor);
  const DType dtype = to_dtype(tensor.scalar_type());
  lazy::Value value = matches(tensor, buffer, dtype) ? admit(buffer.value()) : read_strided(tensor, buffer, dtype);
  if (tensor.is_conj()) {
    const TensorType type = value.type();
    value = record_internal(buffer.graph(), "xla::conj", {"self"}, {std::move(value)}, {}, type);
  }
  if (tensor.is_neg()) {
    const TensorType type = value.type();
    value = record_internal(buffer.graph(), "xla::negate", {"self"}, {std::move(value)}, {}, type);
  }
  return value;
}

void write(const at::Tensor& tensor, lazy::Value value) {
  lazy::Buffer& buffer = buffer_of(tensor);
  if (tensor.is_conj() || tensor.is_neg()) {
    const TensorType type = value.type();
    if (tensor.is_neg()) value = record_internal(buffer.graph(), "xla::negate", {"self"}, {std::move(value)}, {}, type);
    if (tensor.is_conj()) value = record_internal(buffer.graph(), "xla::conj", {"self"}, {std::move(value)}, {}, type);
  }
  if (covers_storage(tensor, buffer)) {
    const bool is_row_major = tensor.is_contiguous();
    buffer.set(std::move(value),
               is_row_major ? nullptr : lazy::intern_layout(to_dims(tensor.sizes()), to_dims(tensor.strides())));
    return;
  }
  if (tensor.numel() == 0) return;
  check_in_storage(tensor, buffer);
  const DType dtype = value.type().dtype;
  lazy::Value base = physical(buffer, dtype);
  const auto& plan = lazy::plan_for(base.type().dims, tensor.sizes(), tensor.strides(), tensor.storage_offset());
  std::vector<int64_t> starts(static_cast<size_t>(plan.num_starts));
  lazy::starts(plan, tensor.storage_offset(), starts.data());
  const TensorType type = base.type();
  buffer.set(
      record_internal(
          buffer.graph(), "xla::strided_write", {"self", "value"}, {std::move(base), std::move(value)},
          {{"sizes", to_dims(tensor.sizes())}, {"strides", to_dims(tensor.strides())}, {"variant", plan.variant}}, type,
          starts),
      nullptr);
}

void resize_value(lazy::Buffer& buffer, size_t new_size_bytes) {
  if (new_size_bytes == 0 || !buffer.value()) {
    buffer.clear();
    return;
  }
  // A size that does not divide into elements keeps the bytes.
  DType dtype = buffer.value().type().dtype;
  if (new_size_bytes % size_bytes(dtype) != 0) dtype = DType::kU8;
  const auto numel = static_cast<int64_t>(new_size_bytes / size_bytes(dtype));
  lazy::Value flat = flatten(physical(buffer, dtype));
  buffer.set(record_internal(buffer.graph(), "xla::resize_flat", {"self"}, {std::move(flat)}, {{"numel", numel}},
                             {dtype, {numel}}),
             nullptr);
}

lazy::Value convert(lazy::Value value, const Dims& dims, DType dtype) {
  lazy::Graph& graph = value.node()->graph();
  if (value.type().dtype != dtype) {
    const TensorType type{dtype, value.type().dims};
    value = record_internal(graph, "xla::cast", {"self"}, {std::move(value)}, {}, type);
  }
  if (value.type().dims != dims) {
    value = record_internal(graph, "xla::expand", {"self"}, {std::move(value)}, {}, {dtype, dims});
  }
  return value;
}

}  // namespace torch_pjrt
