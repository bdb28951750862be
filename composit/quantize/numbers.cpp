#include "composit/quantize/numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "composit/ir/error.h"
#include "composit/shipped/half_types.h"

namespace composit::quantization {

Limits limits_of(int bits) { return {-(1 << (bits - 1)), (1 << (bits - 1)) - 1}; }

namespace {

// The scale as it is stored; at least the smallest one.
float stored_scale(float scale, const WeightFormat& format) {
  constexpr float kLeast = std::numeric_limits<float>::epsilon();
  scale = std::max(scale, kLeast);
  if (format.scales == DType::float16) scale = fl::float16(scale);
  if (format.scales == DType::bfloat16) scale = fl::bfloat16(scale);
  if (std::isinf(scale))
    throw UserError("[quantize] a scale is beyond the range of " +
                    std::string(name(format.scales)) + ": store scales as float32");
  return scale;
}

}  // namespace

Step step_for(const float* values, int64_t count, const WeightFormat& format) {
  const Limits limits = limits_of(format.bits);
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  const auto span = static_cast<float>(limits.high - limits.low);
  if (format.symmetric) return {stored_scale(std::max(-low, high) / (span / 2), format), 0};
  const float scale = stored_scale((high - low) / span, format);
  const auto zero =
      static_cast<int32_t>(static_cast<float>(limits.low) - std::nearbyint(low / scale));
  return {scale, std::clamp(zero, limits.low, limits.high)};
}

int32_t rounded(float x, const Step& step, const Limits& limits) {
  const float scaled = std::nearbyint(x * (1.0F / step.scale)) + static_cast<float>(step.zero);
  return static_cast<int32_t>(
      std::clamp(scaled, static_cast<float>(limits.low), static_cast<float>(limits.high)));
}

Integers nearest(const Matrix& matrix, const WeightFormat& format) {
  Integers integers{format, matrix.rows, matrix.columns};
  integers.values.resize(matrix.values.size());
  const Limits limits = limits_of(format.bits);
  const int64_t group = integers.group();
  const int64_t count = matrix.rows * (group == 0 ? 0 : integers.groups());
  for (int64_t i = 0; i < count; ++i) {
    const float* values = matrix.values.data() + i * group;
    const Step step = integers.steps.emplace_back(step_for(values, group, format));
    for (int64_t k = 0; k < group; ++k)
      integers.values[static_cast<size_t>(i * group + k)] =
          static_cast<int8_t>(rounded(values[k], step, limits));
  }
  return integers;
}

Matrix dequantized(const Integers& integers) {
  Matrix matrix{integers.rows, integers.columns, std::vector<float>(integers.values.size())};
  const auto group = static_cast<size_t>(integers.group());
  for (size_t i = 0; i < matrix.values.size(); ++i)
    matrix.values[i] = value_of(integers.values[i], integers.steps[i / group]);
  return matrix;
}

std::vector<uint8_t> packed(const std::vector<int8_t>& nibbles) {
  std::vector<uint8_t> bytes(nibbles.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>((nibbles[2 * i] & 15) | (nibbles[2 * i + 1] & 15) << 4);
  return bytes;
}

}  // namespace composit::quantization
