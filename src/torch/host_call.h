// The parsed form of a host call's text (ops/host_call.h says how it is written).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string_view>
#include <vector>

#include "torch/host_batch.h"

namespace torch_pjrt {

struct HostCallPlan {
  struct Start {
    size_t operand;  // holds an index
    int64_t stride, limit;
  };
  struct Geometry {
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0;
    std::vector<Start> starts;
  };
  struct Argument {
    enum class Kind : uint8_t {
      kConstant,
      kTensor,
      kMutated,
      kUpdated,
      kWrappedNumber,
      kNumber,
      kGenerator,
      kList,
      kResult,
      kEmpty
    };
    Kind kind = Kind::kConstant;
    size_t operand = 0;                              // of all that have one; kResult: the result; kGenerator: the seed
    size_t result = 0;                               // kUpdated
    std::optional<Geometry> geometry;                // none: the operand, row-major
    size_t count = 0;                                // kList
    size_t offset_operand = 0;                       // kGenerator
    c10::ScalarType dtype = c10::ScalarType::Float;  // kEmpty
    c10::IValue constant;
  };
  struct Result {
    bool is_defined = true;
    std::optional<Geometry> geometry;
  };

  std::string name;  // with the overload
  std::optional<c10::OperatorHandle> op;
  bool is_matmul = false;  // mm or bmm into the result
  const BatchRule* batch_rule = nullptr;
  bool is_elementwise = false;      // on lists of tensors, which it updates
  bool is_linear = false;           // touches each element a few times
  bool allocates_results = false;   // a kernel that is called for its speed, and returns tensors alone
  int num_skipped_allocations = 0;  // of results' sizes, before those that are returned
  std::vector<Argument> arguments;
  std::vector<Result> results;
};

// Throws c10::Error for text that it does not understand, or an operator that this PyTorch lacks.
HostCallPlan parse_host_call(std::string_view text);

}  // namespace torch_pjrt
