// Typed StableHLO text builder. Every operation infers its result type, checks its operands against the StableHLO
// constraints (kInvalidArgument, `stablehlo.op: rule: values`) and appends one line of MLIR text. Knows nothing of
// PyTorch. Not thread safe; one Builder makes one module.
//
// No operation broadcasts or converts by itself; helpers that do (`broadcast_to`, `convert`) say so. Operations that
// would be the identity (reshape to the same dims, convert to the same dtype, ...) return their operand and emit
// nothing.
#pragma once

#include <complex>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor_type.h"

namespace torch_pjrt::stablehlo {

// An SSA value; a cheap handle into the Builder that made it, valid while that lives.
class Value {
 public:
  Value() = default;
  const TensorType& type() const { return *type_; }
  DType dtype() const { return type_->dtype; }
  const Dims& dims() const { return type_->dims; }
  // Throws std::out_of_range for a dimension that the value lacks: a trial lowering finds that, a release build
  // included.
  int64_t dim(int64_t i) const { return type_->dims.at(static_cast<size_t>(i)); }
  int64_t rank() const { return type_->rank(); }
  int64_t numel() const { return type_->numel(); }
  explicit operator bool() const { return type_ != nullptr; }
  auto operator<=>(const Value&) const = default;

 private:
  friend class Builder;
  Value(int64_t id, const TensorType* type) : id_(id), type_(type) {}
  int64_t id_ = -1;
  const TensorType* type_ = nullptr;
};

using Values = std::vector<Value>;
// Builds a region's body: gets the block arguments, returns what the region yields.
using Region = std::function<Values(const Values& arguments)>;

enum class Comparison { kEq, kNe, kGe, kGt, kLe, kLt };
// kDefault picks FLOAT, SIGNED or UNSIGNED by dtype; kTotalOrder orders NaN and signed zeros (floats only).
enum class CompareType { kDefault, kTotalOrder };
enum class Reduction { kAdd, kMul, kMax, kMin, kAnd, kOr };
enum class RngAlgorithm { kDefault, kThreeFry, kPhilox };
enum class FftType { kFft, kIfft, kRfft, kIrfft };

struct DotDims {
  Dims lhs_batch{}, rhs_batch{}, lhs_contracting{}, rhs_contracting{};
};

// Window of reduce_window, select_and_scatter and convolution; empty vectors mean 1 (dims, strides, dilations) or 0
// (padding).
struct Window {
  Dims dims{}, strides{}, base_dilations{}, window_dilations{};
  std::vector<std::pair<int64_t, int64_t>> padding{};
};

struct ConvDims {
  int64_t input_batch = 0, input_feature = 1;
  Dims input_spatial{};
  int64_t kernel_input_feature = 1, kernel_output_feature = 0;
  Dims kernel_spatial{};
  int64_t output_batch = 0, output_feature = 1;
  Dims output_spatial{};
};

struct GatherDims {
  Dims offset_dims{}, collapsed_slice_dims{}, operand_batching_dims{}, start_indices_batching_dims{}, start_index_map{};
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
};

struct ScatterDims {
  Dims update_window_dims{}, inserted_window_dims{}, input_batching_dims{}, scatter_indices_batching_dims{},
      scatter_dims_to_operand_dims{};
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
  bool unique_indices = false;
};

// Where the elements of a value already lie inside another one: element (i, j, ...) is number
// offset + i * strides[0] + j * strides[1] + ... of `base`, counted row-major, plus for each of `starts` its index,
// clamped to [0, limit], times its stride.
struct StridedSource {
  struct Start {
    Value index;  // an integer scalar
    int64_t stride, limit;
  };
  Value base;
  Dims strides{};
  int64_t offset = 0;
  std::vector<Start> starts{};
};

// How a parameter of @main may be aliased by an output (donation).
struct ParameterAttributes {
  std::optional<int64_t> aliasing_output{};  // tf.aliasing_output
  bool buffer_donor = false;                 // jax.buffer_donor
};

struct CallTraits {
  bool has_side_effect = false;
  // Result `first` takes the memory of operand `second`, which has its type: an update in place.
  std::vector<std::pair<size_t, size_t>> aliases{};
  int api_version = 4;
};

class Builder {
 public:
  Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder();

  // --- module -----------------------------------------------------------------------------------------------------
  // Next parameter of @main.
  Value parameter(TensorType type, ParameterAttributes attributes = {});
  // Instead of those that parameter number `index` was made with.
  void set_attributes(size_t index, ParameterAttributes attributes);
  // Ends @main with these results and returns the module's text. Call once.
  std::string finish(const Values& results, std::string_view module_name = "torch_pjrt");
  // Type `module` attributes, before finish: "mhlo.num_replicas = 1 : i32", ...
  void set_partitions(int64_t num_replicas, int64_t num_partitions);
  // Lines emitted from here on carry loc("text"); empty stops it.
  void set_location(std::string_view location);
  // For a compiler that merges computations across an optimization barrier: barriers from here on also make their
  // results depend on the values of all operands in a way that no compiler can see through.
  void guard_barriers();

  // --- constants --------------------------------------------------------------------------------------------------
  // Scalar constants of `dtype`; the number is converted (a double to an integer dtype must be integral).
  Value constant(double value, DType dtype);
  Value constant(int64_t value, DType dtype);
  Value constant(int value, DType dtype) { return constant(static_cast<int64_t>(value), dtype); }
  Value constant(bool value, DType dtype);
  Value constant(std::complex<double> value, DType dtype);
  // A scalar constant broadcast to `type`.
  template <typename T>
  Value splat(T value, const TensorType& type) {
    return broadcast_to(constant(value, type.dtype), type.dims);
  }
  Value splat_like(double value, Value like) { return splat(value, like.type()); }
  // Dense integer constant (index tables); row-major `values`.
  Value dense(const std::vector<int64_t>& values, const TensorType& type);
  Value dense(const std::vector<double>& values, const TensorType& type);
  Value iota(const TensorType& type, int64_t dim);
  // Smallest / largest finite value, or -inf / +inf for floating dtypes; false / true for pred.
  Value lowest(DType dtype);
  Value highest(DType dtype);
  // Neutral element of a reduction, scalar.
  Value identity(Reduction reduction, DType dtype);

  // --- elementwise ------------------------------------------------------------------------------------------------
  // Any unary operation by StableHLO or CHLO mnemonic: "stablehlo.exponential", "chlo.erf". The result type is the
  // operand's, except for is_finite / chlo.is_* (pred), abs of complex, real and imag (the real type).
  Value unary(std::string_view mnemonic, Value x);
  // Any binary operation whose operands and result share one type: "stablehlo.add", "chlo.next_after".
  Value binary(std::string_view mnemonic, Value lhs, Value rhs);

  Value abs(Value x) { return unary("stablehlo.abs", x); }
  Value negate(Value x) { return unary("stablehlo.negate", x); }
  Value sign(Value x) { return unary("stablehlo.sign", x); }
  Value exp(Value x) { return unary("stablehlo.exponential", x); }
  Value expm1(Value x) { return unary("stablehlo.exponential_minus_one", x); }
  Value log(Value x) { return unary("stablehlo.log", x); }
  Value log1p(Value x) { return unary("stablehlo.log_plus_one", x); }
  Value sqrt(Value x) { return unary("stablehlo.sqrt", x); }
  Value rsqrt(Value x) { return unary("stablehlo.rsqrt", x); }
  Value tanh(Value x) { return unary("stablehlo.tanh", x); }
  Value logistic(Value x) { return unary("stablehlo.logistic", x); }
  Value floor(Value x) { return unary("stablehlo.floor", x); }
  Value ceil(Value x) { return unary("stablehlo.ceil", x); }
  Value cos(Value x) { return unary("stablehlo.cosine", x); }
  Value sin(Value x) { return unary("stablehlo.sine", x); }
  Value logical_not(Value x) { return unary("stablehlo.not", x); }  // bitwise for integers
  Value is_finite(Value x) { return unary("stablehlo.is_finite", x); }
  Value real(Value x) { return unary("stablehlo.real", x); }
  Value imag(Value x) { return unary("stablehlo.imag", x); }
  Value is_nan(Value x) { return compare(Comparison::kNe, x, x); }

  Value add(Value a, Value b) { return binary("stablehlo.add", a, b); }
  Value subtract(Value a, Value b) { return binary("stablehlo.subtract", a, b); }
  Value multiply(Value a, Value b) { return binary("stablehlo.multiply", a, b); }
  Value divide(Value a, Value b) { return binary("stablehlo.divide", a, b); }
  Value remainder(Value a, Value b) { return binary("stablehlo.remainder", a, b); }  // sign of the dividend
  Value maximum(Value a, Value b) { return binary("stablehlo.maximum", a, b); }
  Value minimum(Value a, Value b) { return binary("stablehlo.minimum", a, b); }
  Value power(Value a, Value b) { return binary("stablehlo.power", a, b); }
  Value atan2(Value a, Value b) { return binary("stablehlo.atan2", a, b); }
  Value logical_and(Value a, Value b) { return binary("stablehlo.and", a, b); }
  Value logical_or(Value a, Value b) { return binary("stablehlo.or", a, b); }
  Value logical_xor(Value a, Value b) { return binary("stablehlo.xor", a, b); }
  Value shift_left(Value a, Value b) { return binary("stablehlo.shift_left", a, b); }
  Value shift_right_arithmetic(Value a, Value b) { return binary("stablehlo.shift_right_arithmetic", a, b); }
  Value shift_right_logical(Value a, Value b) { return binary("stablehlo.shift_right_logical", a, b); }

  Value complex(Value real, Value imag);
  Value compare(Comparison direction, Value lhs, Value rhs, CompareType type = CompareType::kDefault);
  // `pred` is a scalar or has the operands' dims.
  Value select(Value pred, Value on_true, Value on_false);
  // `low` and `high` are scalars or have the operand's dims.
  Value clamp(Value low, Value x, Value high);
  // Value conversion. Float to integer truncates; to pred means "not equal to zero"; complex to real drops the
  // imaginary part.
  Value convert(Value x, DType dtype);
  // Reinterprets bits; when sizes differ the last dimension is split or merged (StableHLO bitcast_convert).
  Value bitcast_convert(Value x, DType dtype);
  Value reduce_precision(Value x, int64_t exponent_bits, int64_t mantissa_bits);

  // --- shape ------------------------------------------------------------------------------------------------------
  Value reshape(Value x, const Dims& dims);
  // result.dims[i] = x.dims[permutation[i]], as torch.permute.
  Value transpose(Value x, const Dims& permutation);
  // `broadcast_dimensions[i]` is the result dimension of operand dimension i.
  Value broadcast_in_dim(Value x, const Dims& dims, const Dims& broadcast_dimensions);
  // PyTorch's rule: dimensions align at the right, sizes 1 and missing ones expand.
  Value broadcast_to(Value x, const Dims& dims);
  // Broadcasts both to their common shape by PyTorch's rule.
  std::pair<Value, Value> broadcast_pair(Value a, Value b);
  Value slice(Value x, const Dims& starts, const Dims& limits, const Dims& strides = {});
  // [start, limit) along one dimension.
  Value slice_dim(Value x, int64_t dim, int64_t start, int64_t limit, int64_t stride = 1);
  // `starts` are scalars of one integer dtype, clamped as StableHLO says.
  Value dynamic_slice(Value x, const Values& starts, const Dims& sizes);
  Value dynamic_update_slice(Value x, Value update, const Values& starts);
  // `value` is a scalar of x's dtype. Negative low/high crop.
  Value pad(Value x, Value value, const Dims& low, const Dims& high, const Dims& interior = {});
  // Each element counts[i] times in a row along dimension i, as torch.repeat_interleave.
  Value repeat(Value x, const Dims& counts);
  Value concatenate(const Values& xs, int64_t dim);
  Value reverse(Value x, const Dims& dims);
  Value gather(Value operand, Value start_indices, const GatherDims& dims, const Dims& slice_sizes);
  // `update` combines (current, update) scalars; several operands share one set of indices.
  Values scatter(const Values& operands, Value indices, const Values& updates, const ScatterDims& dims,
                 const Region& update);
  // Adds a dimension of size 1 at `dim`; removes one at `dim`.
  Value unsqueeze(Value x, int64_t dim);
  Value squeeze(Value x, int64_t dim);
  // Looks through the reshapes, transposes and slices that made `x`; for any other value, `x` itself.
  StridedSource source_of(Value x) const;

  // --- reductions, windows, sort --------------------------------------------------------------------------------
  // Variadic reduce: the body gets [lhs..., rhs...] scalars and yields one scalar for each input.
  Values reduce(const Values& xs, const Values& initial, const Dims& dims, const Region& body);
  // Reduction from its neutral element; the reduced dimensions disappear.
  Value reduce(Reduction reduction, Value x, const Dims& dims);
  Values reduce_window(const Values& xs, const Values& initial, const Window& window, const Region& body);
  Value reduce_window(Reduction reduction, Value x, const Window& window);
  // `select` compares two scalars (pred), `scatter` combines two scalars.
  Value select_and_scatter(Value operand, Value source, Value initial, const Window& window, const Region& select,
                           const Region& scatter);
  // Comparator gets [lhs0, rhs0, lhs1, rhs1, ...] and yields pred.
  Values sort(const Values& xs, int64_t dim, bool is_stable, const Region& comparator);
  // chlo.top_k over the last dimension: values, and s32 indices.
  std::pair<Value, Value> top_k(Value x, int64_t k);

  // --- control flow ---------------------------------------------------------------------------------------------
  Values while_loop(const Values& initial, const Region& condition, const Region& body);
  Values if_else(Value pred, const Region& on_true, const Region& on_false);  // regions get no arguments

  // --- linear algebra ---------------------------------------------------------------------------------------------
  // Result dims: batch, lhs free, rhs free. `result_dtype` defaults to the operands'. HIGHEST precision always.
  Value dot_general(Value lhs, Value rhs, const DotDims& dims, std::optional<DType> result_dtype = std::nullopt);
  Value convolution(Value input, Value kernel, const Window& window, const ConvDims& dims,
                    int64_t feature_group_count = 1, int64_t batch_group_count = 1,
                    std::optional<DType> result_dtype = std::nullopt);
  Value cholesky(Value x, bool lower);
  Value triangular_solve(Value a, Value b, bool left_side, bool lower, bool unit_diagonal, bool transpose_a,
                         bool conjugate_a = false);
  Value fft(Value x, FftType type, const Dims& lengths);

  // --- others -----------------------------------------------------------------------------------------------------
  // state ui64[2] or ui64[3] -> (new state, random bits of `type`, an unsigned or signed integer type).
  std::pair<Value, Value> rng_bit_generator(Value state, RngAlgorithm algorithm, const TensorType& type);
  Values optimization_barrier(const Values& xs);
  // `backend_config` is the text of an MLIR dictionary body ("eps = 1.0 : f32") when api_version is 4.
  Values custom_call(std::string_view target, const Values& operands, const std::vector<TensorType>& results,
                     std::string_view backend_config = "", const CallTraits& traits = {});

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace torch_pjrt::stablehlo
