// The recorded graph: nodes, and values as (node, output index).
//
// One recursive mutex, lazy::mutex(), guards all of it: nodes, graphs and buffers may only be touched while holding it.
// Nobody calls into Python, or compiles user code, under that lock.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "lazy/device_data.h"
#include "lazy/signature.h"

namespace torch_pjrt::lazy {

class Graph;
class Node;

std::recursive_mutex& mutex();
using Lock = std::lock_guard<std::recursive_mutex>;

// Counted reference to a node, and which of its outputs.
class Value {
 public:
  Value() = default;
  Value(Node* node, uint32_t index);
  Value(const Value& other) : Value(other.node_, other.index_) {}
  Value(Value&& other) noexcept : node_(std::exchange(other.node_, nullptr)), index_(other.index_) {}
  Value& operator=(Value other) noexcept {
    std::swap(node_, other.node_);
    std::swap(index_, other.index_);
    return *this;
  }
  ~Value();

  Node* node() const { return node_; }
  uint32_t index() const { return index_; }
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const Value&) const = default;
  const TensorType& type() const;
  bool is_data() const;

 private:
  friend class Graph;
  Node* node_ = nullptr;
  uint32_t index_ = 0;
};

// Either one recorded operator call, or a leaf that holds device data. Made by Graph; freed when the last Value goes,
// without recursion.
class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const Signature& signature() const { return *signature_; }
  Graph& graph() const { return *graph_; }
  std::span<const Value> operands() const { return {operands_.get(), num_operands_}; }
  // Run-time scalars: bit patterns of int64 or double, see Signature::slot_is_int.
  std::span<const uint64_t> slots() const { return {slots_.get(), num_slots_}; }

  bool is_data() const { return static_cast<bool>(data_); }
  const Ref<DeviceData>& data() const { return data_; }
  const TensorType& type(uint32_t index) const { return data_ ? data_->type() : signature_->outputs[index].type; }
  // Storages that hold this leaf; at 0 its buffer may be donated to the program that uses it last.
  uint32_t num_holders() const { return num_holders_; }
  uint32_t num_references() const { return references_; }
  // Of an operator: none of its sources is data, so that it gives the same whenever it runs.
  bool is_constant() const { return is_constant_; }

  // The line that recorded it; 0 when not asked for (see source_location.h).
  uint32_t location = 0;
  // The rematerialisation region that this was recorded in; 0 for none (see remat_region.h).
  uint32_t region = 0;
  // Scratch of the pass that is walking the graph.
  mutable uint64_t pass = 0;
  mutable uint32_t position = 0;
  // Of a leaf: runs that would need its data to compute their results again. Its buffer is not donated meanwhile.
  uint32_t num_keepers = 0;

 private:
  friend class Graph;
  friend class Value;
  friend class Buffer;
  Node() = default;
  ~Node() = default;

  const Signature* signature_ = nullptr;
  Graph* graph_ = nullptr;
  Node* previous_ = nullptr;
  Node* next_ = nullptr;
  Ref<DeviceData> data_;
  std::unique_ptr<Value[]> operands_;
  std::unique_ptr<uint64_t[]> slots_;
  uint32_t num_operands_ = 0;
  uint32_t num_slots_ = 0;
  uint32_t references_ = 0;
  uint32_t num_holders_ = 0;
  bool is_pending_ = false;  // in the graph's list
  bool is_constant_ = false;
};

inline Value::Value(Node* node, uint32_t index) : node_(node), index_(index) {
  if (node_ != nullptr) ++node_->references_;
}
inline const TensorType& Value::type() const { return node_->type(index_); }
inline bool Value::is_data() const { return node_ != nullptr && node_->is_data(); }

}  // namespace torch_pjrt::lazy
