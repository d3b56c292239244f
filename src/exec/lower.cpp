#include "exec/lower.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "exec/barrier_probe.h"
#include "exec/runtime.h"
#include "lazy/source_location.h"
#include "ops/lowering.h"
#include "ops/registry.h"
#include "stablehlo/builder.h"

namespace torch_pjrt {

using stablehlo::Builder;
using stablehlo::Value;
using stablehlo::Values;

namespace {

// The parameters that the scalars of one dtype are read from, in node order.
class ScalarParameters {
 public:
  ScalarParameters(Builder& builder, DType dtype, size_t count, bool is_packed) : b_(builder), is_packed_(is_packed) {
    if (count == 0) return;
    if (is_packed) {
      parameters_.push_back(b_.parameter({dtype, {static_cast<int64_t>(count)}}));
    } else {
      for (size_t i = 0; i < count; ++i) parameters_.push_back(b_.parameter({dtype, {}}));
    }
  }
  Value read(size_t i) {
    if (!is_packed_) return parameters_.at(i);
    const auto index = static_cast<int64_t>(i);
    return b_.reshape(b_.slice_dim(parameters_[0], 0, index, index + 1), {});
  }

 private:
  Builder& b_;
  bool is_packed_;
  Values parameters_;
};

bool has_barrier(const Snapshot& snapshot) {
  const auto& nodes = snapshot.nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const lazy::Node* node) {
    return node->signature().schema->name == "xla::optimization_barrier";
  });
}

// The dtype may differ from what PyTorch promised (a float32 result of a bfloat16 operator); the dimensions may not.
void check_results(Builder& b, const lazy::Signature& signature, Values& results) {
  TP_CHECK(results.size() == signature.outputs.size(), signature.schema->name, ": the lowering gave ", results.size(),
           " results, expected ", signature.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    const TensorType& expected = signature.outputs[i].type;
    TP_CHECK(results[i].dims() == expected.dims, signature.schema->name, ": result ", i, " is ",
             results[i].type().hlo(), ", PyTorch says ", expected.hlo());
    results[i] = b.convert(results[i], expected.dtype);
  }
}

// A donated parameter goes to the output that replaces it in its storage, where the types agree.
void match_aliases(const Snapshot& snapshot, Builder& b, LoweredModule& module) {
  module.donated.assign(snapshot.parameters.size(), false);
  std::unordered_map<const lazy::Node*, size_t> parameter_of;
  for (size_t i = 0; i < snapshot.parameters.size(); ++i) {
    if (snapshot.donated[i]) parameter_of.emplace(snapshot.parameters[i], i);
  }
  std::vector<bool> is_taken(module.outputs.size());
  for (size_t i = 0; i < snapshot.buffers.size(); ++i) {
    // The previous leaf may be gone: only its address is looked at.
    const auto it = parameter_of.find(snapshot.buffers[i]->previous_leaf());
    if (it == parameter_of.end()) continue;
    const uint32_t output = module.buffer_outputs[i];
    const size_t parameter = it->second;
    const TensorType& type = snapshot.parameters[parameter]->data()->type();
    if (is_taken[output] || module.donated[parameter] || type != module.outputs[output]) continue;
    b.set_attributes(parameter, {.aliasing_output = output});
    module.donated[parameter] = true;
    is_taken[output] = true;
    ++module.num_aliased;
  }
}

class GraphLowering {
 public:
  GraphLowering(const Snapshot& snapshot, LoweredModule& module) : snapshot_(snapshot), module_(module) {
    for (const lazy::Node* leaf : snapshot.parameters) parameters_.push_back(b_.parameter(leaf->data()->type()));
    const bool is_packed = packs_scalars(snapshot);
    integers_.emplace(b_, DType::kS64, snapshot.integers.size(), is_packed);
    reals_.emplace(b_, DType::kF64, snapshot.reals.size(), is_packed);
  }

  std::string run() {
    if (has_barrier(snapshot_) && Runtime::is_started() && merges_across_barriers()) b_.guard_barriers();
    results_.resize(snapshot_.nodes.size());
    for (size_t i = 0; i < snapshot_.nodes.size(); ++i) results_[i] = lower_located(*snapshot_.nodes[i]);
    b_.set_location("");
    const Values outputs = collect_outputs();
    match_aliases(snapshot_, b_, module_);
    return b_.finish(outputs);
  }

 private:
  // Distinct results among the pending buffers become the program's outputs. Results of different operators stay apart
  // also where they are equal, as zeros are: what is one buffer once, and not in the next step, is another program.
  Values collect_outputs() {
    Values outputs;
    std::map<std::pair<uint32_t, Value>, uint32_t> index_of;
    for (const OutputRef& ref : snapshot_.values) {
      const Value value = result(ref.node, ref.index);
      const auto [it, is_new] = index_of.emplace(std::pair(ref.node, value), static_cast<uint32_t>(outputs.size()));
      if (is_new) {
        outputs.push_back(value);
        module_.outputs.push_back(value.type());
      }
      module_.buffer_outputs.push_back(it->second);
    }
    return outputs;
  }

  Value result(uint32_t position, uint32_t index) const {
    if ((position & kParameterBit) != 0) return parameters_[position & ~kParameterBit];
    const Value value = results_[position].at(index);
    TP_CHECK(value, snapshot_.nodes[position]->signature().schema->name, ": result ", index, " is undefined but used");
    return value;
  }

  // The compiler's messages name the operator, and the line that recorded it, where lines are recorded.
  Values lower_located(const lazy::Node& node) {
    const std::string& name = node.signature().schema->name;
    const std::string line = node.location == 0 ? "" : ", at " + lazy::location_text(node.location);
    if (lazy::nodes_have_locations()) b_.set_location(name + line);
    try {
      return lower_node(node);
    } catch (const Error& error) {
      throw Error(error.code(), concat(error.what(), " (lowering ", name, line, ")"));
    }
  }

  Values lower_node(const lazy::Node& node) {
    const lazy::Signature& signature = node.signature();
    Values operands;
    for (const lazy::Value& operand : node.operands()) {
      operands.push_back(result(operand.node()->position, operand.index()));
    }
    // Each slot is the next of its kind in node order.
    std::vector<size_t> places;
    for (const bool is_int : signature.slot_is_int) places.push_back(is_int ? next_integer_++ : next_real_++);
    std::vector<Value> read(places.size());
    const auto scalar = [&](uint32_t slot) {
      if (!read.at(slot)) {
        read[slot] = signature.slot_is_int[slot] ? integers_->read(places[slot]) : reals_->read(places[slot]);
      }
      return read[slot];
    };
    LoweringContext context(b_, signature, std::move(operands), scalar);
    Values results = signature.entry->lower(context);
    check_results(b_, signature, results);
    return results;
  }

  const Snapshot& snapshot_;
  LoweredModule& module_;
  Builder b_;
  Values parameters_;
  std::optional<ScalarParameters> integers_, reals_;
  size_t next_integer_ = 0;
  size_t next_real_ = 0;
  std::vector<Values> results_;
};

}  // namespace

bool packs_scalars(const Snapshot& snapshot) {
  // An optimizer step has a few scalars for each output.
  constexpr size_t kAlwaysSeparate = 256;
  constexpr size_t kForEachOutput = 8;
  return snapshot.integers.size() + snapshot.reals.size() > kAlwaysSeparate + kForEachOutput * snapshot.values.size();
}

LoweredModule lower(const Snapshot& snapshot) {
  LoweredModule module;
  module.text = GraphLowering(snapshot, module).run();
  return module;
}

TrialLowering try_lowering(const lazy::Signature& signature, bool has_outputs) {
  Builder b;
  Values operands;
  for (const TensorType& type : signature.operands) operands.push_back(b.parameter(type));
  const auto scalar = [&](uint32_t slot) {
    return b.parameter({signature.slot_is_int.at(slot) ? DType::kS64 : DType::kF64, {}});
  };
  OperandCheckScope scope(b, operands);
  LoweringContext context(b, signature, std::move(operands), scalar, has_outputs);
  Values results = signature.entry->lower(context);
  if (has_outputs) check_results(b, signature, results);
  TrialLowering trial;
  for (const Value& value : results) {
    trial.outputs.push_back(value ? TrialOutput{true, value.type()} : TrialOutput{false, {}});
  }
  trial.checks = std::move(scope.checks);
  return trial;
}

}  // namespace torch_pjrt
