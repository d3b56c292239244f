// The pending graph of one device: all nodes that are recorded and not yet run, in recording order, and the buffers
// whose value is one of them. Because a node lives only as long as a buffer or another node needs it, the list holds
// exactly what the next cut has to compute, already in topological order.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lazy/node.h"
#include "lazy/remat_region.h"

namespace torch_pjrt::lazy {

class Buffer;

class Graph {
 public:
  explicit Graph(int device) : device_(device) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Graph of a device ordinal; alive for the process. Caller holds the lock, as for every function here.
  static Graph& get(int device);
  // All graphs that were asked for so far.
  static std::vector<Graph*> all();

  int device() const { return device_; }

  // Appends a node; `operands` are moved from. All operands belong to this graph.
  Node* record(const Signature& signature, std::span<Value> operands, std::span<const uint64_t> slots);
  // A leaf; not in the pending list.
  Value leaf(Ref<DeviceData> data);
  // Other data of the same type in the place of a leaf's, for all that hold the leaf.
  static void replace_data(Node& leaf, Ref<DeviceData> data);
  // Other values of the same types in the place of some operands of pending nodes: (old, new).
  void replace(std::span<const std::pair<Value, Value>> replacements);
  // The same operator on other operands, which are moved from; not in the pending list.
  static Value copy(const Node& node, std::span<Value> operands);

  size_t num_pending() const { return num_pending_; }
  uint64_t num_recorded() const { return num_recorded_; }
  const Node* first() const { return first_; }
  static const Node* next(const Node* node) { return node->next_; }
  Node* last() const { return last_; }

  Buffer* first_buffer() const { return first_buffer_; }

  RematRegion& remat_region() { return remat_region_; }

  // To be told of each operator that a backward records, and of each cut that succeeds.
  void note_backward() { cuts_before_backward_ = num_cuts_; }
  void note_cut() {
    ++num_cuts_;
    has_initial_values_ = false;
  }
  int64_t num_cuts() const { return num_cuts_; }
  // Whether a backward recorded some of what is pending; whether one did so lately: what a program does between its
  // backward and its optimizer (reading the loss, the norm of the gradients) may cut.
  bool has_backward() const { return cuts_before_backward_ == num_cuts_; }
  bool is_after_backward() const { return num_cuts_ - cuts_before_backward_ < kLongAgo; }
  // Whether some buffer has had an initial_value() since the last cut.
  bool has_initial_values() const { return has_initial_values_; }

  // A fresh mark for Node::pass.
  uint64_t next_pass() { return ++pass_; }

 private:
  friend class Buffer;
  friend class Value;
  static constexpr int64_t kLongAgo = 4;  // cuts
  static void release(Node* node);
  static void set_inputs(Node& node, std::span<Value> operands, std::span<const uint64_t> slots);
  void unlink(Node* node);

  int device_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  Buffer* first_buffer_ = nullptr;
  Buffer* last_buffer_ = nullptr;
  size_t num_pending_ = 0;
  uint64_t num_recorded_ = 0;
  uint64_t pass_ = 0;
  int64_t num_cuts_ = 0;
  int64_t cuts_before_backward_ = -kLongAgo;  // of the last one
  bool has_initial_values_ = false;
  RematRegion remat_region_;
};

}  // namespace torch_pjrt::lazy
