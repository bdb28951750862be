// The common part of the tests of the mosaic backend's header. They are built for several
// instruction sets, each as a program of its own.
//
//   Guarded<float> y(12, 40);                       // NaN all over, as far as nothing is stored
//   y(3, 39) = 1;
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace flashlight::mosaic::test {

// As tests that compare with torch have them (tests/agreement.h), for types of two (bfloat16), four
// or eight bytes: of the number, and of the largest one. Apart, since its code must not be that of
// an instruction set that may be absent.
struct Tolerance {
  double relative, absolute;
};
Tolerance tolerance_of(size_t bytes);

// Small whole numbers, of which sums are exact.
template <class T>
std::vector<T> whole_numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& number : numbers) number = static_cast<T>(static_cast<int>(random() % 15) - 7);
  return numbers;
}
template <class T>
std::vector<T> normal_numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<std::conditional_t<sizeof(T) == 2, float, T>> normal;
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& number : numbers) number = normal(random);
  return numbers;
}

// Rows with a gap behind each, and a margin on either side, where nothing may be stored.
template <class T>
class Guarded {
 public:
  Guarded(int64_t rows, int64_t columns, int64_t gap = 3)
      : rows_(rows),
        columns_(columns),
        pitch_(columns + gap),
        elements_(static_cast<size_t>(rows * pitch_ + 2 * kMargin),
                  static_cast<T>(std::numeric_limits<float>::quiet_NaN())) {}

  T* data() { return elements_.data() + kMargin; }
  int64_t pitch() const { return pitch_; }
  T& operator()(int64_t row, int64_t column) { return data()[row * pitch_ + column]; }

  // Empty, or what is stored outside, or where something else than expected(row, column) is inside.
  template <class Expected>
  std::string differences(const Expected& expected) {
    return differences(expected, Tolerance{0, 0});
  }
  // To so many times the tolerance of tests that compare with torch, of numbers of so many bytes.
  template <class Expected>
  std::string differences(const Expected& expected, double times, size_t bytes = sizeof(T)) {
    const Tolerance one = tolerance_of(bytes);
    return differences(expected, Tolerance{times * one.relative, times * one.absolute});
  }

 private:
  template <class Expected>
  std::string differences(const Expected& expected, Tolerance tolerance) {
    std::vector<double> values;
    double largest = 1;
    for (int64_t row = 0; row < rows_; ++row)
      for (int64_t column = 0; column < columns_; ++column) {
        values.push_back(expected(row, column));
        if (std::isfinite(values.back())) largest = std::max(largest, std::abs(values.back()));
      }
    for (int64_t i = 0; i < static_cast<int64_t>(elements_.size()); ++i) {
      const int64_t row = (i - kMargin) / pitch_, column = (i - kMargin) % pitch_;
      const auto x = static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(
          elements_[static_cast<size_t>(i)]);
      if (i < kMargin || row >= rows_ || column >= columns_) {
        if (!std::isnan(x)) return "stored outside, at " + std::to_string(i - kMargin);
        continue;
      }
      const double y = values[static_cast<size_t>(row * columns_ + column)];
      const double allowed = tolerance.relative * std::abs(y) + tolerance.absolute * largest;
      if (!(x == y || std::abs(x - y) <= allowed || (std::isnan(x) && std::isnan(y))))
        return std::string("[") + std::to_string(row) + ", " + std::to_string(column) + "] is " +
               std::to_string(x) + ", expected " + std::to_string(y);
    }
    return "";
  }

  static constexpr int64_t kMargin = 70;
  int64_t rows_, columns_, pitch_;
  std::vector<T> elements_;
};

}  // namespace flashlight::mosaic::test
