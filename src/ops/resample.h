// Lines as fixed sparse combinations of lines: interpolation, reflection, overlapping windows, and their adjoints.
#pragma once

#include <vector>

#include "stablehlo/builder.h"

namespace torch_pjrt {

struct Tap {
  int64_t index;
  double weight;
};

// A sparse matrix with a row for each output position.
class Taps {
 public:
  explicit Taps(int64_t input_size) : input_size_(input_size) {}

  void add(std::vector<Tap> row) { rows_.push_back(std::move(row)); }
  int64_t input_size() const { return input_size_; }
  const std::vector<std::vector<Tap>>& rows() const { return rows_; }
  int64_t output_size() const { return static_cast<int64_t>(rows_.size()); }
  Taps transposed() const;

 private:
  int64_t input_size_;
  std::vector<std::vector<Tap>> rows_;
};

// Replaces each line of `x` along `dim` by its product with the matrix.
stablehlo::Value resample(stablehlo::Builder& b, stablehlo::Value x, int64_t dim, const Taps& taps);

}  // namespace torch_pjrt
