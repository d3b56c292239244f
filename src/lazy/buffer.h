// The contents of a storage: what an `xla` tensor's DataPtr points to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "lazy/graph.h"
#include "lazy/node.h"

namespace torch_pjrt::lazy {

// How a value's elements lie in a storage when that is not row-major: dense, non-overlapping, starting at byte 0.
struct Layout {
  Dims sizes;
  Dims strides;
  // value.transpose(physical_order) is the row-major storage.
  Dims physical_order;
  bool operator==(const Layout&) const = default;
};

// The one Layout object for these sizes and strides, alive for the process; nullptr when they are row-major.
// The strides must be dense and non-overlapping.
const Layout* intern_layout(const Dims& sizes, const Dims& strides);

class Buffer {
 public:
  Buffer(int device, size_t size_bytes) : size_bytes_(size_bytes), graph_(&Graph::get(device)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  Graph& graph() const { return *graph_; }
  size_t size_bytes() const { return size_bytes_; }

  // Null until the first write.
  const Value& value() const { return value_; }
  const Layout* layout() const { return layout_; }

  void set(Value value, const Layout* layout);
  void clear() { set(Value(), nullptr); }
  // Changes the size; the owner rewrites the value to match.
  void set_size_bytes(size_t size_bytes) { size_bytes_ = size_bytes; }

  // The leaf that this buffer held before its pending value: the natural buffer to donate to it. Valid only while some
  // node of the pending graph uses it, so compare, do not dereference.
  const Node* previous_leaf() const { return previous_leaf_; }
  void set_previous_leaf(const Value& leaf) { previous_leaf_ = leaf.node(); }
  // The constant that this buffer, which never held data, held before its pending value: node and output. Null when
  // there was none; to be compared only, like the previous leaf.
  std::pair<const Node*, uint32_t> initial_value() const { return initial_value_; }
  Buffer* next_pending() const { return next_; }

 private:
  friend class Graph;
  void unlink();
  void note_initial_value(const Node& next);

  Value value_;
  const Layout* layout_ = nullptr;
  size_t size_bytes_;
  Graph* graph_;
  Buffer* previous_ = nullptr;
  Buffer* next_ = nullptr;
  const Node* previous_leaf_ = nullptr;
  std::pair<const Node*, uint32_t> initial_value_;
  bool is_linked_ = false;
};

}  // namespace torch_pjrt::lazy
