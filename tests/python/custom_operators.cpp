// Operators of a library that knows nothing of xla: a CPU kernel and a meta kernel each, but for the last one. Loaded
// by conftest.py.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <torch/library.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using at::Tensor;

Tensor twice(const Tensor& x) { return x * 2; }

// The strides that the kernel meets.
Tensor strides(const Tensor& x) { return at::tensor(x.strides(), at::kLong); }
Tensor strides_meta(const Tensor& x) {
  return at::empty({x.dim()}, at::TensorOptions().dtype(at::kLong).device(at::kMeta));
}

Tensor& scale_(Tensor& x, double factor) { return x.mul_(factor); }

std::vector<Tensor> rows(const Tensor& x) {
  std::vector<Tensor> result;
  for (const Tensor& row : x.unbind(0)) result.push_back(row.clone());
  return result;
}

// The second result is there on request.
std::tuple<Tensor, Tensor> everything(const Tensor& x, const c10::List<std::optional<Tensor>>& items,
                                      const at::Scalar& number, at::ArrayRef<at::Scalar> numbers,
                                      at::ArrayRef<double> weights, at::IntArrayRef sizes, std::string_view mode,
                                      std::optional<at::ScalarType> dtype, std::optional<double> absent,
                                      std::array<bool, 2> mask) {
  Tensor sum = x.to(dtype.value_or(x.scalar_type())).add(number);
  for (const std::optional<Tensor>& item : items) {
    if (item) sum = sum + *item;
  }
  for (const at::Scalar& other : numbers) sum = sum + other;
  for (const double weight : weights) sum = sum + weight;
  for (const int64_t size : sizes) sum = sum + size;
  TORCH_CHECK(!absent && mask[0], "an argument was lost");
  if (mode == "with spaces | and bars") sum = -sum;
  return {sum, mask[1] ? sum.sum() : Tensor()};
}

Tensor fail(const Tensor& x, std::string_view kind) {
  if (x.is_meta()) return at::empty_like(x);
  const std::string words = "no luck with " + std::string(kind) + "\nsecond line";
  TORCH_CHECK_INDEX(kind != "IndexError", words);
  TORCH_CHECK_VALUE(kind != "ValueError", words);
  TORCH_CHECK_TYPE(kind != "TypeError", words);
  TORCH_CHECK_NOT_IMPLEMENTED(kind != "NotImplementedError", words);
  TORCH_CHECK_LINALG(kind != "LinAlgError", words);
  TORCH_CHECK_WITH(OutOfMemoryError, kind != "OutOfMemoryError", words);
  if (kind == "runtime_error") throw std::runtime_error(words);
  if (kind == "bad_alloc") throw std::bad_alloc();
  if (kind == "int") throw 1;
  TORCH_CHECK(kind != "RuntimeError", words);
  return x.clone();
}

std::atomic<int64_t> g_failures{0};

// The next `count` calls of `unlucky` fail.
void set_failures(int64_t count) { g_failures = count; }

// Fails on values above 0 alone, so not while a call is recorded.
Tensor unlucky(const Tensor& x) {
  if (x.is_meta()) return at::empty_like(x);
  if (x.numel() > 0 && x.max().item<double>() > 0 && g_failures > 0) {
    --g_failures;
    TORCH_CHECK_INDEX(false, "out of luck");
  }
  return x.clone();
}

TORCH_LIBRARY(tp_test, m) {
  m.def("twice(Tensor x) -> Tensor");
  m.def("strides(Tensor x) -> Tensor");
  m.def("scale_(Tensor(a!) x, float factor) -> Tensor(a!)");
  m.def("rows(Tensor x) -> Tensor[]");
  m.def(
      "everything(Tensor x, Tensor?[] items, Scalar number, Scalar[] numbers, float[] weights, int[] sizes, str mode, "
      "ScalarType? dtype, float? absent, bool[2] mask) -> (Tensor, Tensor)");
  m.def("fail(Tensor x, str kind) -> Tensor");
  m.def("unlucky(Tensor x) -> Tensor");
  m.def("set_failures(int count) -> ()", set_failures);
  m.def("without_meta(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(tp_test, CPU, m) {
  m.impl("twice", twice);
  m.impl("strides", strides);
  m.impl("scale_", scale_);
  m.impl("rows", rows);
  m.impl("everything", everything);
  m.impl("fail", fail);
  m.impl("unlucky", unlucky);
  m.impl("without_meta", twice);
}

TORCH_LIBRARY_IMPL(tp_test, Meta, m) {
  m.impl("twice", twice);
  m.impl("strides", strides_meta);
  m.impl("scale_", scale_);
  m.impl("rows", rows);
  m.impl("everything", everything);
  m.impl("fail", fail);
  m.impl("unlucky", unlucky);
}

}  // namespace
