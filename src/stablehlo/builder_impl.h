// The Builder's private half: type interning, value numbering, scopes, and the writer that appends MLIR text.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "stablehlo/builder.h"

namespace torch_pjrt::stablehlo {

// A type together with its printed form. Interned: one object for each type of a module, so that pointers compare.
struct InternedType : TensorType {
  std::string text;
};

// A type that is looked up, without a copy of its dims.
struct TypeKey {
  DType dtype;
  const Dims& dims;
  TypeKey(DType dtype, const Dims& dims) : dtype(dtype), dims(dims) {}
  TypeKey(const TensorType& type) : dtype(type.dtype), dims(type.dims) {}
};

struct InternedTypeHash {
  using is_transparent = void;
  size_t operator()(const TypeKey& key) const {
    uint64_t hash = static_cast<uint64_t>(key.dtype) + 1;
    for (const int64_t dim : key.dims) hash = (hash ^ static_cast<uint64_t>(dim)) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 32);
  }
};

struct InternedTypeEqual {
  using is_transparent = void;
  bool operator()(const TypeKey& a, const TypeKey& b) const { return a.dtype == b.dtype && a.dims == b.dims; }
};

// The bit pattern of a scalar constant; `high` holds the imaginary part.
struct ConstantKey {
  DType dtype;
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const ConstantKey&) const = default;
};

struct ConstantKeyHash {
  size_t operator()(const ConstantKey& key) const {
    Hash128 hash;
    hash.mix(static_cast<uint64_t>(key.dtype));
    hash.mix(key.low);
    hash.mix(key.high);
    return hash.low;
  }
};

struct SplatKey {
  int64_t scalar;
  const TensorType* type;
  bool operator==(const SplatKey&) const = default;
};

struct SplatKeyHash {
  size_t operator()(const SplatKey& key) const {
    return (static_cast<uint64_t>(key.scalar) * 0x9e3779b97f4a7c15ULL) ^ (reinterpret_cast<uintptr_t>(key.type) >> 4);
  }
};

// What can be reused in one region. XLA clones no value into the bodies of reduce, sort and scatter, so every region
// starts with an empty scope.
struct Scope {
  std::unordered_map<ConstantKey, Value, ConstantKeyHash> constants;
  std::unordered_map<SplatKey, Value, SplatKeyHash> splats;  // rank-0 values broadcast to a type
  int64_t first_visible_number = 0;                          // values numbered below it may not be captured
};

// A value that is a transpose of how it is stored: value.transpose(permutation).
struct StoredOrder {
  Value value;
  Dims permutation;
};

enum class Capture { kForbidden, kAllowed };

struct Builder::Impl {
  Impl();

  // --- types and values
  // -----------------------------------------------------------------------------------------------
  const InternedType* intern(const TypeKey& key);
  const InternedType* intern(DType dtype, const Dims& dims) { return intern(TypeKey(dtype, dims)); }
  static const InternedType* type_of(Value value) { return static_cast<const InternedType*>(value.type_); }
  static int64_t id_of(Value value) { return value.id_; }

  // The low bit of an id tells block arguments (%arg7) from results (%7); the number is unique in the module.
  Value new_result(const InternedType* type) { return Value(next_number++ << 1, type); }
  Value new_argument(const InternedType* type) { return Value(next_number++ << 1 | 1, type); }

  // --- writing
  // --------------------------------------------------------------------------------------------------------
  Impl& operator<<(std::string_view part) {
    text.append(part);
    return *this;
  }
  Impl& operator<<(const char* part) { return *this << std::string_view(part); }
  Impl& operator<<(char part) {
    text.push_back(part);
    return *this;
  }
  Impl& operator<<(int64_t number) {
    char digits[24];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    return *this;
  }
  Impl& operator<<(bool flag) { return *this << std::string_view(flag ? "true" : "false"); }
  Impl& operator<<(Value value);  // %7
  Impl& operator<<(const InternedType* type) { return *this << std::string_view(type->text); }
  Impl& operator<<(const Dims& dims);                        // 1, 2, 3
  Impl& operator<<(const Values& values);                    // %1, %2
  Impl& types(const Values& values);                         // tensor<f32>, tensor<2xi64>
  Impl& i64_array(std::string_view name, const Dims& dims);  // name = array<i64: 1, 2>

  Impl& dims_field(std::string_view name, const Dims& dims);  // `name = [1, 2], `, or nothing when empty
  Impl& padding_field(const std::vector<std::pair<int64_t, int64_t>>& padding);

  void indent() { text.append(2 * (scopes.size() + 1), ' '); }
  // Starts the line of an operation: indentation and result names.
  Impl& begin(Value result) {
    indent();
    return *this << result << " = ";
  }
  Impl& begin(const Values& results);
  // ` : (operand types) -> result types`, and ends the line.
  void end(const Values& operands, const Values& results);
  void end(Value operand, Value result);
  // ` : type`, and ends the line.
  void end(Value value);
  void end_line();

  // Writes `{ ^bb0(arguments): body }` and returns what the body yields.
  Values region(const std::vector<const InternedType*>& arguments, const Region& body, Capture capture,
                std::string_view op);

  // For operations whose result types are known only after their regions: puts `results = op(operands) ` before the
  // regions' text, which begins at `start`, and ends the line.
  Values close_regions(size_t start, std::string_view op, const Values& operands,
                       const std::vector<const InternedType*>& result_types);

  // `result = mnemonic operand : type` in the form for one type, or `: (type) -> type` when they differ.
  Value unary(std::string_view mnemonic, Value x, const InternedType* result_type);

  // Checks the operands of a reduction over windows or dimensions; returns the scalar types its body works on.
  static std::vector<const InternedType*> check_reduction(std::string_view op, const Values& xs, const Values& initial);
  static void check_yields(std::string_view op, const Values& yielded, const std::vector<const InternedType*>& types);

  // A scalar constant, emitted once for each region.
  Value constant(const ConstantKey& key);
  Value dense(const std::vector<ConstantKey>& elements, const TensorType& type);

  Scope& scope() { return scopes.back(); }

  // Remember that `result` is a view of `x` (strided_source.cpp).
  void note_reshape(Value result, Value x);
  void note_transpose(Value result, Value x, const Dims& permutation);
  void note_slice(Value result, Value x, const Dims& starts, const Dims& strides);
  void note_dynamic_slice(Value result, Value x, const Values& starts);
  StridedSource source_of(Value x) const;

  // x, transposed, as a concatenation of values that lie row-major in that order already; nullopt when it is none.
  std::optional<Value> concatenation_in_order(Builder& b, Value x, const Dims& permutation) const;

  // --- the order in which results of custom calls are stored (stored_order.cpp)
  const StoredOrder* find_stored(Value x) const;
  // What `emit` makes of operands of one shape (or scalars), elementwise, in the stored order of the first operand that
  // has one, seen in the operands' own order; nullopt when none has.
  std::optional<Value> in_stored_order(Builder& b, const Values& operands,
                                       const std::function<Value(const Values&)>& emit);
  // What `emit` makes of the stored value, whose dimension i is the operand's dimension to_stored[i], seen in the
  // operand's own order; nullopt when `x` has no other. The result has the dimensions of the operand, of other sizes.
  std::optional<Value> in_stored_order(Builder& b, Value x,
                                       const std::function<Value(Value, const Dims& to_stored)>& emit);
  // `value`, which takes the place of what `x` is stored as, seen in the order of x.
  Value in_order_of(Builder& b, Value x, Value value);
  // The stored value and its dimensions to reduce; nullopt when `x` has none, or the result would be transposed.
  std::optional<std::pair<Value, Dims>> reduction_in_stored_order(Value x, const Dims& dims) const;
  std::optional<Value> broadcast_in_order(Builder& b, Value x, const Dims& to_stored) const;

  std::string text;  // the body of @main so far
  std::unordered_set<InternedType, InternedTypeHash, InternedTypeEqual> interned;
  int64_t next_number = 0;
  std::vector<Scope> scopes;
  std::vector<std::pair<Value, ParameterAttributes>> parameters;
  std::string location;  // ` loc("...")`, or empty
  bool guards_barriers = false;
  std::unordered_map<int64_t, StridedSource> sources;                      // by the id of a view
  std::unordered_map<int64_t, std::pair<Values, int64_t>> concatenations;  // by id: operands and dimension
  std::unordered_set<int64_t> call_results;                                // ids
  std::unordered_map<int64_t, StoredOrder> stored;
  std::unordered_map<int64_t, std::pair<Value, Dims>> broadcasts;  // by id: what was broadcast, and where to
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  bool finished = false;
};

// "stablehlo.add" for kAdd.
std::string_view reduction_mnemonic(Reduction reduction);

// A result may be of a wider type than the operands', of the same kind.
void check_accumulation_dtype(std::string_view op, DType operand, DType result);

// Text of `s` inside MLIR double quotes.
void append_escaped(std::string& out, std::string_view s);

// Fails unless `dims` are distinct dimensions of a rank-`rank` value.
void check_dims(std::string_view op, std::string_view name, const Dims& dims, int64_t rank);

}  // namespace torch_pjrt::stablehlo
