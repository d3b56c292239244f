#include "stablehlo/builder.h"
#include "stablehlo/golden.h"

namespace torch_pjrt::stablehlo {
namespace {

const TensorType kMatrix{DType::kF32, {2, 3}};

TEST(Shape, operations_infer_their_dims) {
  Builder b;
  const Value x = b.parameter(kMatrix);
  const Value zero = b.constant(0.0, DType::kF32);
  const Values values{b.reshape(x, {3, 2}),
                      b.transpose(x, {1, 0}),
                      b.broadcast_in_dim(x, {2, 4, 3}, {0, 2}),
                      b.broadcast_to(b.slice(x, {0, 0}, {2, 1}), {5, 2, 4}),
                      b.slice(x, {0, 1}, {2, 3}),
                      b.slice(x, {0, 0}, {2, 3}, {1, 2}),
                      b.slice_dim(x, 1, 0, 2),
                      b.pad(x, zero, {1, 0}, {0, -1}, {0, 2}),
                      b.concatenate({x, x, b.slice_dim(x, 0, 0, 1)}, 0),
                      b.reverse(x, {0, 1}),
                      b.unsqueeze(x, 2),
                      b.squeeze(b.slice_dim(x, 0, 1, 2), 0)};
  const std::vector<Dims> expected{{3, 2}, {3, 2}, {2, 4, 3}, {5, 2, 4}, {2, 2},    {2, 2},
                                   {2, 2}, {3, 6}, {5, 3},    {2, 3},    {2, 3, 1}, {3}};
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i].dims(), expected[i]) << i;
  expect_golden("stablehlo/shape", b.finish(values));
}

TEST(Shape, identities_emit_nothing) {
  Builder b;
  const Value x = b.parameter(kMatrix);
  const Value start = b.parameter({DType::kS32, {}});
  const Value zero = b.constant(0.0, DType::kF32);
  for (const Value& same :
       {b.reshape(x, {2, 3}), b.transpose(x, {0, 1}), b.broadcast_to(x, {2, 3}), b.slice(x, {0, 0}, {2, 3}),
        b.pad(x, zero, {0, 0}, {0, 0}), b.concatenate({x}, 1), b.reverse(x, {}), b.reduce(Reduction::kAdd, x, {}),
        b.dynamic_slice(x, {start, start}, {2, 3})}) {
    EXPECT_EQ(same, x);
  }
}

TEST(Shape, works_on_empty_and_scalar_values) {
  Builder b;
  const Value empty = b.parameter({DType::kF32, {0, 3}});
  const Value scalar = b.parameter({DType::kF32, {}});
  const Values values{b.transpose(empty, {1, 0}),           b.reshape(empty, {3, 0}),  b.concatenate({empty, empty}, 0),
                      b.pad(empty, scalar, {1, 0}, {1, 0}), b.reshape(scalar, {1, 1}), b.broadcast_to(scalar, {0}),
                      b.reduce(Reduction::kAdd, empty, {0})};
  EXPECT_EQ(values[3].dims(), (Dims{2, 3}));
  expect_golden("stablehlo/shape_empty", b.finish(values));
}

size_t count_of(std::string_view part, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Transpose, of_a_concatenation_joins_what_lies_in_that_order) {
  Builder b;
  Values heads;
  for (int i = 0; i < 2; ++i) {
    heads.push_back(b.unsqueeze(b.transpose(b.parameter({DType::kF32, {5, 3, 4}}), {1, 0, 2}), 0));
  }
  const Value joined = b.concatenate(heads, 0);
  const Value in_rows = b.transpose(joined, {2, 0, 1, 3});
  EXPECT_EQ(in_rows.dims(), (Dims{5, 2, 3, 4}));
  const Value in_another_order = b.transpose(joined, {1, 0, 2, 3});
  EXPECT_EQ(in_another_order.dims(), (Dims{3, 2, 5, 4}));
  const std::string text = b.finish({in_rows, in_another_order});
  EXPECT_EQ(count_of("stablehlo.transpose", text), 3U);  // of both heads, and the last
  EXPECT_NE(text.find("dim = 1 : (tensor<5x1x3x4xf32>, tensor<5x1x3x4xf32>) -> tensor<5x2x3x4xf32>"), text.npos)
      << text;
}

TEST(DynamicSlice, reads_and_writes_at_values) {
  Builder b;
  const Value x = b.parameter(kMatrix);
  const Value i = b.parameter({DType::kS64, {}});
  const Value j = b.parameter({DType::kS64, {}});
  const Value part = b.dynamic_slice(x, {i, j}, {1, 2});
  const Value scalar = b.parameter({DType::kF32, {}});
  EXPECT_EQ(b.dynamic_slice(scalar, {}, {}), scalar);
  expect_golden("stablehlo/dynamic_slice", b.finish({part, b.dynamic_update_slice(x, part, {j, i})}));
}

TEST(Shape, errors_name_operation_rule_and_values) {
  Builder b;
  const Value x = b.parameter(kMatrix);
  const auto invalid = [](const std::string& text, const auto& action) {
    expect_error(ErrorCode::kInvalidArgument, text, action);
  };
  invalid("stablehlo.reshape: the number of elements must stay: f32[2,3] to [4]", [&] { b.reshape(x, {4}); });
  invalid("stablehlo.transpose: permutation must be distinct: [0, 0]", [&] { b.transpose(x, {0, 0}); });
  invalid("stablehlo.broadcast_in_dim: a dimension must be 1 or keep its size: f32[2,3] to [2, 4] along [0, 1]",
          [&] { b.broadcast_to(x, {2, 4}); });
  invalid("stablehlo.slice: needs 0 <= start <= limit <= size and stride > 0: 0:4:1 in dimension 1 of f32[2,3]",
          [&] { b.slice_dim(x, 1, 0, 4); });
  invalid("stablehlo.concatenate: types must agree outside dimension 0: f32[2,3] and f32[3,2]",
          [&] { b.concatenate({x, b.reshape(x, {3, 2})}, 0); });
  invalid("The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1",
          [&] { b.broadcast_pair(x, b.parameter({DType::kF32, {2}})); });
}

TEST(BroadcastPair, follows_pytorch) {
  Builder b;
  const auto [x, y] = b.broadcast_pair(b.parameter({DType::kF32, {4, 1}}), b.parameter({DType::kF32, {2, 1, 3}}));
  EXPECT_EQ(x.dims(), (Dims{2, 4, 3}));
  EXPECT_EQ(y.dims(), (Dims{2, 4, 3}));
  const auto [p, q] = b.broadcast_pair(b.parameter({DType::kF32, {1}}), b.parameter({DType::kF32, {0}}));
  EXPECT_EQ(p.dims(), (Dims{0}));
  EXPECT_EQ(q.dims(), (Dims{0}));
}

}  // namespace
}  // namespace torch_pjrt::stablehlo
