// Numbers as integers with scales: what `quantize` writes into weights.
//
//   const Integers integers = nearest(matrix, {.bits = 4, .group = 32});
//   const Matrix again = dequantized(integers);
//
// Arithmetic is that of torch's operators: float32, ties to even.
#pragma once

#include <cstdint>
#include <vector>

#include "composit/quantize/quantize.h"

namespace composit::quantization {

// Row-major [rows, columns]; columns are the inputs of a layer.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> values = {};
  const float* row(int64_t i) const { return values.data() + i * columns; }
  float* row(int64_t i) { return values.data() + i * columns; }
};

// The integers that `bits` bits hold, in two's complement.
struct Limits {
  int32_t low, high;
};
Limits limits_of(int bits);

// A number x is q = round(x / scale) + zero, within the limits.
struct Step {
  float scale = 1;
  int32_t zero = 0;
};
// The step that covers these numbers, and 0, as torch's choose_qparams has it.
Step step_for(const float* values, int64_t count, const WeightFormat& format);
int32_t rounded(float x, const Step& step, const Limits& limits);
inline float value_of(int32_t q, const Step& step) {
  return static_cast<float>(q - step.zero) * step.scale;
}

// A matrix as integers: a step per row and group of columns.
struct Integers {
  WeightFormat format;
  int64_t rows = 0, columns = 0;
  std::vector<int8_t> values = {};  // [rows, columns]
  std::vector<Step> steps = {};     // [rows, groups()]
  int64_t group() const { return format.group == 0 ? columns : format.group; }
  int64_t groups() const { return columns / group(); }
};

Integers nearest(const Matrix& matrix, const WeightFormat& format);
Matrix dequantized(const Integers& integers);
// Two to a byte, low half first.
std::vector<uint8_t> packed(const std::vector<int8_t>& nibbles);

}  // namespace composit::quantization
