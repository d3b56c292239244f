// A custom call that runs one of PyTorch's CPU kernels on XLA's buffers inside the compiled program.
//
// The call describes itself in one attribute, so that a program that was saved runs in another process. The text is the
// operator and its arguments, in the order of its schema, then "|" and the results, separated by spaces:
//   aten::mm t0:64,32;1,64;0 t1 | r
// An argument is one of
//   t0                operand 0 as a tensor, row-major
//   t0:SIZES;STRIDES;OFFSET[;I*STRIDE<LIMIT]...   a view of operand 0, with the start indices that operands I hold
//   m0, m0:...        the same as a tensor that the operator updates: a copy; its new value is a result
//   u0,1              operand 0, row-major, as a tensor that the operator updates in place: result 1 is its memory
//   w0                operand 0, of no dimensions, as a tensor that stands for a Python number in type promotion
//   e11               an empty tensor of a dtype, as an out= argument that the operator sizes; its value is a result
//   o0                result 0, as an out= argument
//   x1                operand 1, of no dimensions, as a number
//   g1,2              a generator of its own, seeded by operands 1 and 2: a seed and an offset
//   l2                a list of the next 2 arguments, tensors or numbers
//   n                 None, or an undefined tensor
//   i7, f0x1p-1, b1   an int, a float (hexadecimal), a bool
//   c0x1p-1,0x0p+0    a complex number
//   I1,2  F0x1p-1,0x1p-2  B10                     lists of them
//   d11               a dtype, by number (base/dtype.h)
//   s616263           a string, as hexadecimal bytes
// and a result is r (row-major), r:SIZES;STRIDES;0, or u (not computed). Results are the operator's own, lists item by
// item, then the new values of m and e arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lazy/signature.h"
#include "stablehlo/builder.h"

namespace torch_pjrt {

// Batch, then space, then features: the order of a [N, C, *] value of this rank in which PyTorch's CPU kernels are
// fastest, forward and backward.
Dims features_last(int64_t rank);

// Whether a [N, C, *] value lies so in memory.
bool has_features_last(stablehlo::Builder& b, stablehlo::Value x);

// What src/torch/host_call.cpp is registered as.
inline constexpr std::string_view kHostCallTarget = "torch_pjrt_aten";

class HostCall {
 public:
  // `op` names an ATen operator, with its overload if it has one: "aten::sum.dim_IntList".
  HostCall(stablehlo::Builder& builder, std::string_view op) : b_(builder), text_(op) {}
  // Hands [N, C, L] tensors over as [N, C, 1, L], and takes such results.
  HostCall& as_planes() {
    has_planes_ = true;
    return *this;
  }

  // --- arguments, in the order of the schema
  // A tensor. What reshapes, transposes and slices made of a value is handed over as that value with strides, so that
  // nothing is copied for the call.
  HostCall& tensor(stablehlo::Value x);
  // A tensor that lies in memory in the order of `physical` (a permutation of its dimensions, outermost first): it is
  // copied to that order unless it has it already.
  HostCall& tensor(stablehlo::Value x, const Dims& physical);
  // A tensor that the operator should meet with these strides, as long as they are those of a dense tensor or no copy
  // is needed for them; else row-major. `is_updated` for one that it writes.
  HostCall& strided(stablehlo::Value x, const Dims& strides, bool is_updated);
  // A tensor that the operator updates in place; its new value is the next result. XLA copies it first where its old
  // value is needed later.
  HostCall& updated(stablehlo::Value x);
  HostCall& wrapped_number(stablehlo::Value scalar);
  HostCall& empty(DType dtype);
  // The result of this number, for an out= overload: the kernel then writes where XLA wants it.
  HostCall& out(size_t result);
  HostCall& number(stablehlo::Value scalar);
  HostCall& generator(stablehlo::Value seed, stablehlo::Value offset);
  HostCall& list(size_t count);
  HostCall& attribute(const lazy::Attribute& value);
  HostCall& none() { return attribute({}); }
  HostCall& integer(int64_t value) { return attribute(value); }
  HostCall& integers(const Dims& values) { return attribute(values); }

  // --- results, in the order of the schema
  HostCall& result(const TensorType& type);
  // In memory in the order of `physical`.
  HostCall& result(const TensorType& type, const Dims& physical);
  HostCall& undefined_result();

  // Emits the call; an undefined result is a null value.
  stablehlo::Values emit();

 private:
  void separate() { text_ += ' '; }
  HostCall& add_tensor(char kind, stablehlo::Value x);
  HostCall& add_tensor(char kind, stablehlo::Value x, const Dims& physical);
  size_t add_operand(stablehlo::Value x);
  void add_geometry(Dims sizes, Dims strides, int64_t offset);

  struct Result {
    bool is_defined = false;
    TensorType stored;  // as it lies in memory
    Dims permutation;   // from there to the result's dimensions; empty for none
  };

  stablehlo::Builder& b_;
  std::string text_;
  stablehlo::Values operands_;
  std::vector<Result> results_;
  std::vector<std::pair<size_t, size_t>> aliases_;  // result, operand
  bool has_planes_ = false;
};

}  // namespace torch_pjrt
