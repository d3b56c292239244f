#include "exec/initial_values.h"

#include <bit>

#include "exec/test_runtime.h"
#include "lazy/signature.h"

namespace torch_pjrt {
namespace {

const TensorType kVector{DType::kF32, {4}};
const TensorType kScalar{DType::kF32, {}};

// An operator of this name, with results of one type and real numbers as slots.
lazy::Signature make_signature(const lazy::Schema& schema, std::vector<TensorType> operands, const TensorType& result,
                               size_t num_slots, size_t num_results = 1) {
  lazy::Signature signature;
  signature.schema = &schema;
  signature.operands = std::move(operands);
  signature.slot_is_int.assign(num_slots, false);
  signature.outputs.assign(num_results, {result, Dims(result.dims.size(), 1)});
  signature.hash.mix(std::string_view(schema.name));
  signature.hash.mix_range(result.dims.begin(), result.dims.end());
  return signature;
}

class InitialValuesOfStorages : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(graph_.num_pending(), 0u);
    parameter_.set(leaf(kVector), nullptr);
  }

  lazy::Value leaf(const TensorType& type) {
    const std::vector<float> ones(4, 1.0f);
    return graph_.leaf(Runtime::get().upload(ones.data(), type, 0));
  }
  lazy::Value zeros() { return {graph_.record(zero_, {}, {}), 0}; }
  lazy::Value full(const lazy::Signature& signature, double number) {
    const uint64_t slot = std::bit_cast<uint64_t>(number);
    return {graph_.record(signature, {}, {&slot, 1}), 0};
  }
  lazy::Value add(const lazy::Signature& signature, lazy::Value a, lazy::Value b) {
    lazy::Value operands[] = {std::move(a), std::move(b)};
    return {graph_.record(signature, operands, {}), 0};
  }
  // What an optimizer does with its state.
  void update(lazy::Buffer& state) { state.set(add(add_, state.value(), gradient_), nullptr); }
  void update_parameter() { parameter_.set(add(add_, parameter_.value(), gradient_), nullptr); }
  // As a run of the snapshot's program would.
  void compute(const Snapshot& snapshot) {
    for (lazy::Buffer* buffer : snapshot.buffers) buffer->set(leaf(buffer->value().type()), nullptr);
  }

  const lazy::Schema zero_schema_{"aten::zero", "", {}, "aten::zero_", {}};
  const lazy::Schema full_schema_{"aten::full", "", {}, "aten::full", {}};
  const lazy::Schema add_schema_{"aten::add", "Tensor", {}, "aten::add_.Tensor", {}};
  const lazy::Signature zero_ = make_signature(zero_schema_, {}, kVector, 0);
  const lazy::Signature full_ = make_signature(full_schema_, {}, kVector, 1);
  const lazy::Signature full_scalar_ = make_signature(full_schema_, {}, kScalar, 1);
  const lazy::Signature add_ = make_signature(add_schema_, {kVector, kVector}, kVector, 0);
  const lazy::Signature foreach_add_ =
      make_signature(add_schema_, {kScalar, kScalar, kScalar, kScalar, kVector}, kScalar, 0, 4);
  const lazy::Signature add_scalar_ = make_signature(add_schema_, {kScalar, kVector}, kScalar, 0);

  const lazy::Lock lock_{lazy::mutex()};
  lazy::Graph& graph_ = lazy::Graph::get(0);
  lazy::Buffer parameter_{0, kVector.size_bytes()};
  lazy::Value gradient_;

  Snapshot all_;
  Snapshot first_;
};

TEST_F(InitialValuesOfStorages, zeros_are_uploaded_and_the_rest_is_computed) {
  gradient_ = leaf(kVector);
  lazy::Buffer sum(0, kVector.size_bytes()), ramp(0, kVector.size_bytes());
  sum.set(zeros(), nullptr);
  ramp.set(full(full_, 2), nullptr);
  const lazy::Node* const ramp_node = ramp.value().node();
  for (lazy::Buffer* state : {&sum, &ramp}) update(*state);
  update_parameter();
  take_snapshot(graph_, all_);
  InitialValues values(graph_, all_);
  ASSERT_FALSE(values.empty());
  values.prepare(first_);
  ASSERT_EQ(first_.nodes, std::vector{ramp_node});
  EXPECT_TRUE(first_.parameters.empty());
  ASSERT_EQ(first_.buffers.size(), 1u);
  compute(first_);
  values.replace();
  for (const lazy::Buffer* state : {&sum, &ramp}) {
    const lazy::Value& initial = state->value().node()->operands()[0];
    EXPECT_TRUE(initial.is_data());
    EXPECT_EQ(state->previous_leaf(), initial.node());
  }
  // What is left is the step: three sums.
  EXPECT_EQ(graph_.num_pending(), 3u);
  take_snapshot(graph_, all_);
  EXPECT_EQ(all_.nodes.size(), 3u);
  EXPECT_EQ(all_.parameters.size(), 4u);
}

TEST_F(InitialValuesOfStorages, equal_scalars_that_one_operator_updates_are_one_value) {
  gradient_ = leaf(kVector);
  std::vector<std::unique_ptr<lazy::Buffer>> counters;
  for (const double number : {3.0, 3.0, -0.0, 0.0, 3.0}) {
    counters.push_back(std::make_unique<lazy::Buffer>(0, kScalar.size_bytes()));
    counters.back()->set(full(full_scalar_, number), nullptr);
  }
  lazy::Value operands[5];
  for (size_t i = 0; i < 4; ++i) operands[i] = counters[i]->value();
  operands[4] = gradient_;
  const lazy::Value together(graph_.record(foreach_add_, operands, {}), 0);
  for (uint32_t i = 0; i < 4; ++i) counters[i]->set(lazy::Value(together.node(), i), nullptr);
  counters[4]->set(add(add_scalar_, counters[4]->value(), gradient_), nullptr);
  update_parameter();
  take_snapshot(graph_, all_);
  InitialValues values(graph_, all_);
  values.prepare(first_);
  EXPECT_EQ(first_.buffers.size(), 3u);  // 0.0 is uploaded, -0.0 is none of the zeros
  compute(first_);
  values.replace();
  const auto initial_of = [&](size_t i) { return together.node()->operands()[i].node(); };
  EXPECT_EQ(initial_of(0), initial_of(1));
  EXPECT_NE(initial_of(1), initial_of(2));
  EXPECT_NE(initial_of(2), initial_of(3));
  EXPECT_NE(counters[4]->value().node()->operands()[0].node(), initial_of(0));
}

TEST_F(InitialValuesOfStorages, are_none_of_results_and_of_what_had_data) {
  gradient_ = leaf(kVector);
  lazy::Buffer kept(0, kVector.size_bytes()), user(0, kVector.size_bytes());
  kept.set(full(full_, 2), nullptr);
  user.set(kept.value(), nullptr);
  update(user);
  // Another's zeros in the place of data are no beginning.
  parameter_.set(zeros(), nullptr);
  update_parameter();
  take_snapshot(graph_, all_);
  EXPECT_TRUE(InitialValues(graph_, all_).empty());
  EXPECT_FALSE(kept.value().is_data());
}

TEST_F(InitialValuesOfStorages, are_none_where_nothing_is_updated) {
  gradient_ = leaf(kVector);
  lazy::Buffer sum(0, kVector.size_bytes());
  sum.set(zeros(), nullptr);
  update(sum);
  take_snapshot(graph_, all_);
  EXPECT_TRUE(InitialValues(graph_, all_).empty());
}

TEST_F(InitialValuesOfStorages, a_failure_before_they_are_replaced_leaves_the_graph) {
  gradient_ = leaf(kVector);
  lazy::Buffer ramp(0, kVector.size_bytes());
  ramp.set(full(full_, 2), nullptr);
  const lazy::Node* const initial = ramp.value().node();
  update(ramp);
  update_parameter();
  take_snapshot(graph_, all_);
  const Hash128 hash = all_.hash;
  {
    InitialValues values(graph_, all_);
    ASSERT_FALSE(values.empty());
    values.prepare(first_);
  }
  EXPECT_EQ(ramp.value().node()->operands()[0].node(), initial);
  take_snapshot(graph_, all_);
  EXPECT_EQ(all_.hash, hash);
  EXPECT_EQ(all_.buffers.size(), 2u);
}

}  // namespace
}  // namespace torch_pjrt
