#include "exec/explain.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace torch_pjrt {
namespace {

// Signatures of calls on float32 tensors, made as the recorder would: equal calls share one.
class Calls {
 public:
  const lazy::Signature* get(const std::string& name, std::vector<Dims> inputs, int64_t dim = 0) {
    auto schema = std::make_unique<lazy::Schema>();
    schema->name = name;
    schema->argument_names = {"dim"};
    auto signature = std::make_unique<lazy::Signature>();
    signature->schema = schema.get();
    signature->hash.mix(std::string_view(name));
    for (const Dims& dims : inputs) {
      signature->operands.push_back({DType::kF32, dims});
      signature->hash.mix_range(dims.begin(), dims.end());
    }
    signature->hash.mix(dim);
    lazy::Argument argument;
    argument.attribute = dim;
    signature->arguments.push_back(argument);
    for (const auto& known : signatures_) {
      if (known->hash == signature->hash) return known.get();
    }
    schemas_.push_back(std::move(schema));
    signatures_.push_back(std::move(signature));
    return signatures_.back().get();
  }

  const lazy::Signature* with_output(const lazy::Signature& call, const TensorType& type) {
    signatures_.push_back(std::make_unique<lazy::Signature>(call));
    signatures_.back()->outputs.push_back({type, row_major_strides(type.dims)});
    return signatures_.back().get();
  }

 private:
  std::vector<std::unique_ptr<lazy::Schema>> schemas_;
  std::vector<std::unique_ptr<lazy::Signature>> signatures_;
};

// A chain: every call takes parameter 0, and the result before it as its second input.
GraphSummary chain(const std::vector<const lazy::Signature*>& calls, lazy::LocationId location = 0) {
  GraphSummary graph;
  for (const lazy::Signature* call : calls) {
    graph.nodes.push_back({call, location, 0, static_cast<uint32_t>(graph.operands.size())});
    for (size_t i = 0; i < call->operands.size(); ++i) {
      const bool is_chained = i > 0 && graph.nodes.size() > 1;
      graph.operands.push_back({is_chained ? static_cast<uint32_t>(graph.nodes.size() - 2) : kParameterBit, 0});
    }
  }
  graph.parameters = {{DType::kF32, {128, 784}}};
  graph.donated = {false};
  graph.outputs = {{static_cast<uint32_t>(calls.size() - 1), 0}};
  count_ops(graph);
  return graph;
}

TEST(LargestValue, names_its_operator_and_line) {
  Calls calls;
  GraphSummary graph =
      chain({calls.get("aten::mm", {{2, 3}}), calls.get("aten::add", {{4, 3}})}, lazy::intern_location("f@train.py:3"));
  EXPECT_EQ(largest_value(graph), "");
  for (GraphSummary::Node& node : graph.nodes) {
    node.signature = calls.with_output(*node.signature, node.signature->operands[0]);
  }
  EXPECT_EQ(largest_value(graph), "f32[4,3] of `aten::add`, at f@train.py:3");
}

class FirstDifference : public testing::Test {
 protected:
  Calls calls_;
  const lazy::Signature* mm_ = calls_.get("aten::mm", {{128, 784}, {784, 10}});
  const lazy::Signature* relu_ = calls_.get("aten::relu", {{128, 10}});
  const lazy::Signature* add_ = calls_.get("aten::add", {{128, 10}, {128, 10}});
  const lazy::Signature* sum_ = calls_.get("aten::sum", {{128, 10}});
};

TEST_F(FirstDifference, names_the_input_that_changed_its_shape) {
  const auto location = lazy::intern_location("forward@train.py:31");
  const auto* smaller = calls_.get("aten::mm", {{96, 784}, {784, 10}});
  EXPECT_EQ(first_difference(chain({mm_, sum_}), chain({smaller, sum_}, location)),
            "`aten::mm` input 0 was [128, 784], is [96, 784], at forward@train.py:31");
}

TEST_F(FirstDifference, names_the_dtypes_where_they_changed) {
  auto half = *mm_;
  half.operands[1].dtype = DType::kBF16;
  half.hash.mix(1);
  EXPECT_EQ(first_difference(chain({mm_}), chain({&half})), "`aten::mm` input 1 was f32[784,10], is bf16[784,10]");
}

TEST_F(FirstDifference, names_the_attribute) {
  const auto* other = calls_.get("aten::sum", {{128, 10}}, 1);
  EXPECT_EQ(first_difference(chain({mm_, sum_}), chain({mm_, other})), "`aten::sum` dim was 0, is 1");
}

TEST_F(FirstDifference, names_operators_added_and_removed) {
  const auto shorter = chain({mm_, relu_, sum_});
  const auto longer = chain({mm_, relu_, add_, add_, sum_});
  EXPECT_EQ(first_difference(shorter, longer), "`aten::add` and 1 more operator were added");
  EXPECT_EQ(first_difference(longer, shorter), "`aten::add` and 1 more operator were removed");
  EXPECT_EQ(first_difference(chain({mm_}), chain({mm_, relu_})), "`aten::relu` was added");
  EXPECT_EQ(first_difference(chain({mm_, relu_}), chain({mm_})), "`aten::relu` was removed");
}

TEST_F(FirstDifference, names_an_operator_that_became_another) {
  EXPECT_EQ(first_difference(chain({mm_, relu_, sum_}), chain({mm_, add_, mm_})),
            "operator 1 was `aten::relu`, is `aten::add`");
}

TEST_F(FirstDifference, names_another_source_of_an_input) {
  const auto before = chain({mm_, relu_, add_});
  auto now = before;
  now.operands[now.nodes[2].first_operand].node = 0;
  EXPECT_EQ(first_difference(before, now),
            "`aten::add` input 0 was argument 0 of the program, is the result of operator 0 (`aten::mm`)");
}

TEST_F(FirstDifference, names_a_result_that_is_kept) {
  const auto before = chain({mm_, relu_});
  auto now = before;
  now.outputs.insert(now.outputs.begin(), {0, 0});
  EXPECT_EQ(first_difference(before, now),
            "tensors kept: were 1, are 2; the result of operator 0 (`aten::mm`) is now kept");
  EXPECT_EQ(first_difference(now, before),
            "tensors kept: were 2, are 1; the result of operator 0 (`aten::mm`) is no longer kept");
}

TEST_F(FirstDifference, names_an_argument_that_is_donated) {
  const auto before = chain({mm_});
  auto now = before;
  now.donated[0] = true;
  EXPECT_EQ(first_difference(before, now),
            "argument 0 of the program, f32[128,784], was still held by a tensor afterwards, and is no longer: its "
            "memory is reused");
}

TEST_F(FirstDifference, of_equal_graphs_is_outside_of_them) {
  EXPECT_EQ(first_difference(chain({mm_}), chain({mm_})),
            "the compile options differ, or the earlier program was dropped from memory");
}

TEST_F(FirstDifference, similarity_counts_common_operators) {
  EXPECT_DOUBLE_EQ(similarity(chain({mm_, relu_}), chain({mm_, relu_})), 1);
  EXPECT_DOUBLE_EQ(similarity(chain({mm_, relu_}), chain({add_, sum_})), 0);
  EXPECT_DOUBLE_EQ(similarity(chain({mm_, relu_, relu_}), chain({relu_})), 0.5);
}

TEST_F(FirstDifference, history_compares_with_the_nearest_program) {
  GraphHistory history;
  const auto keep = [](GraphSummary graph) { return std::make_shared<const GraphSummary>(std::move(graph)); };
  EXPECT_EQ(history.explain(chain({mm_})), "the first program of the process");
  history.add(0, keep(chain({mm_, relu_, sum_})));
  history.add(1, keep(chain({add_, add_})));
  EXPECT_EQ(history.explain(chain({mm_, sum_})), "`aten::relu` was removed (compared with program 0)");
  EXPECT_EQ(history.explain(chain({calls_.get("aten::cos", {{2}})})),
            "no earlier program shares half of its operators");
}

TEST_F(FirstDifference, history_drops_the_oldest) {
  GraphHistory history;
  for (size_t i = 0; i < GraphHistory::kMaxPrograms + 1; ++i) {
    history.add(static_cast<int64_t>(i), std::make_shared<const GraphSummary>(chain({mm_})));
  }
  EXPECT_EQ(history.find(0), nullptr);
  EXPECT_NE(history.find(1), nullptr);
}

}  // namespace
}  // namespace torch_pjrt
