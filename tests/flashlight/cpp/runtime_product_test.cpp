// Sums and products of the header that generated code includes, against loops in double. Built for
// each instruction set that the header has tiles for.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "flashlight/runtime/flashlight.hpp"

namespace {

// Small whole numbers, of which sums are exact.
template <class T>
std::vector<T> whole_numbers(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& number : numbers) number = static_cast<T>(static_cast<int>(random() % 15) - 7);
  return numbers;
}

template <class T>
struct Matrix {
  std::vector<T> elements;
  int row_step, column_step;
  T& operator()(int i, int j) {
    return elements[static_cast<size_t>(i * row_step + j * column_step)];
  }
  auto places() {
    return [this](int i, int j) -> const T& { return (*this)(i, j); };
  }
  auto values() {
    return [this](int i, int j) { return (*this)(i, j); };
  }
};
template <class T>
Matrix<T> matrix(int rows, int columns, bool transposed, unsigned seed) {
  return {whole_numbers<T>(rows * columns, seed), transposed ? 1 : columns, transposed ? rows : 1};
}

// Every element has to be stored once.
template <class T, class Left, class Right>
void expect_product(int rows, int columns, int terms, Left left, Right right) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + " x " +
               std::to_string(terms));
  std::vector<double> expected(static_cast<size_t>(rows * columns));
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      for (int k = 0; k < terms; ++k)
        expected[static_cast<size_t>(i * columns + j)] += double{left(i, k)} * double{right(k, j)};
  std::vector<int> stores(expected.size());
  fl::product<T>(rows, columns, terms, left, right, [&](int i, int j, T sum) {
    const auto at = static_cast<size_t>(i * columns + j);
    ++stores[at];
    expected[at] -= double{sum};
  });
  EXPECT_EQ(stores, std::vector<int>(stores.size(), 1));
  EXPECT_EQ(expected, std::vector<double>(expected.size()));
}

template <class T>
void expect_products(int rows, int columns, int terms) {
  for (const bool left_transposed : {false, true})
    for (const bool right_transposed : {false, true}) {
      auto left = matrix<T>(rows, terms, left_transposed, 1);
      auto right = matrix<T>(terms, columns, right_transposed, 2);
      expect_product<T>(rows, columns, terms, left.places(), right.places());
      expect_product<T>(rows, columns, terms, left.values(), right.places());
      expect_product<T>(rows, columns, terms, left.places(), right.values());
      expect_product<T>(rows, columns, terms, left.values(), right.values());
    }
}

TEST(RuntimeProduct, HasEverySize) {
  const int sizes[] = {1, 2, 4, 5, 7, 8, 11, 13, 16, 17, 31, 33, 49, 100};
  for (const int rows : sizes)
    for (const int columns : sizes)
      for (const int terms : {1, 3, 16, 37}) {
        expect_products<float>(rows, columns, terms);
        if ((rows + columns) % 3 == 0) expect_products<double>(rows, columns, terms);
      }
}

TEST(RuntimeProduct, HasSeveralGroupsOfPanels) {
  expect_products<float>(13, 70, 9001);
  expect_products<double>(30, 40, 4500);
}

// Right is NaN where no row of a tile has the term: those must not be touched.
TEST(RuntimeProduct, LeavesOutTermsThatRowsDoNotHave) {
  constexpr int kSize = 70, kTerms = 1300;  // terms in two parts
  auto left = matrix<double>(kSize, kTerms, false, 1),
       right = matrix<double>(kTerms, kSize, false, 2);
  const auto range = [](int i) { return fl::Range{i / 2, i < 3 ? 0 : i * 18}; };
  const auto has = [&](int i, int k) { return k >= range(i).begin && k < range(i).end; };
  for (int k = kTerms - 50; k < kTerms; ++k)
    for (int j = 0; j < kSize; ++j) right(k, j) = NAN;
  std::vector<double> sums(kSize * kSize, 1000);
  fl::product<double>(
      kSize, kSize, fl::within(kTerms, range),
      [&](int i, int k) { return has(i, k) ? left(i, k) : 0; }, right.places(),
      [&](int i, int j, double sum) { sums[static_cast<size_t>(i * kSize + j)] = sum; });
  for (int i = 0; i < kSize; ++i)
    for (int j = 0; j < kSize; ++j) {
      double expected = 0;
      for (int k = 0; k < kTerms; ++k)
        if (has(i, k)) expected += left(i, k) * right(k, j);
      EXPECT_EQ(sums[static_cast<size_t>(i * kSize + j)], expected) << i << " " << j;
    }
}

TEST(RuntimeProduct, IsZeroInColumnsThatRowsDoNotHave) {
  constexpr int kSize = 70, kTerms = 9;
  auto left = matrix<float>(kSize, kTerms, false, 1), right = matrix<float>(kTerms, kSize, true, 2);
  const auto range = [](int i) { return fl::Range{i / 2, i < 3 ? 0 : i + 1}; };
  std::vector<float> sums(kSize * kSize, 1000);
  fl::product<float>(
      kSize, fl::within(kSize, range), kTerms, left.places(), right.places(),
      [&](int i, int j, float sum) { sums[static_cast<size_t>(i * kSize + j)] = sum; });
  for (int i = 0; i < kSize; ++i)
    for (int j = 0; j < kSize; ++j) {
      float expected = 0;
      for (int k = 0; k < kTerms && j >= range(i).begin && j < range(i).end; ++k)
        expected += left(i, k) * right(k, j);
      EXPECT_EQ(sums[static_cast<size_t>(i * kSize + j)], expected) << i << " " << j;
    }
}

TEST(RuntimeProduct, OfNothingIsNothing) {
  int stores = 0;
  const float x = 1;
  const auto element = [&](int, int) -> auto& { return x; };
  const auto count = [&](int, int, float sum) { stores += sum == 0 ? 1 : 1000; };
  fl::product<float>(0, 3, 3, element, element, count);
  fl::product<float>(3, 0, 3, element, element, count);
  EXPECT_EQ(stores, 0);
  fl::product<float>(3, 4, 0, element, element, count);
  EXPECT_EQ(stores, 12);
}

// A convolution: places of pixels in a row are equally far apart, those of rows are not.
TEST(RuntimeProduct, ReadsWindowsInPlace) {
  constexpr int kChannels = 3, kSize = 29, kOut = 9, kStride = 2, kSide = (kSize - 3) / kStride + 1;
  auto image = whole_numbers<float>(kChannels * kSize * kSize, 1);
  auto weight = matrix<float>(kOut, kChannels * 9, false, 2);
  const auto pixel = [&](int k, int j) -> const float& {
    const int y = j / kSide * kStride + k / 3 % 3, x = j % kSide * kStride + k % 3;
    return image[static_cast<size_t>((k / 9 * kSize + y) * kSize + x)];
  };
  expect_product<float>(kOut, kSide * kSide, kChannels * 9, weight.places(), pixel);
  const auto turned = [&](int i, int k) -> const float& { return pixel(k, i); };
  const auto turned_weight = [&](int k, int j) -> const float& { return weight(j, k); };
  expect_product<float>(kSide * kSide, kOut, kChannels * 9, turned, turned_weight);
}

// The first and the last element of a row are as far apart as if it were dense.
TEST(RuntimeProduct, ReadsTransposedSquaresInPlace) {
  constexpr int kRows = 5, kSide = 8, kTerms = 6;
  auto left = matrix<float>(kRows, kTerms, false, 1);
  const auto squares = whole_numbers<float>(kTerms * kSide * kSide, 2);
  const auto right = [&](int k, int j) -> const float& {
    return squares[static_cast<size_t>((k * kSide + j % kSide) * kSide + j / kSide)];
  };
  expect_product<float>(kRows, kSide * kSide, kTerms, left.places(), right);
  expect_product<float>(kRows, kSide * kSide, kTerms, left.values(), right);
}

TEST(RuntimeProduct, RoundsAsSumsOfFloatsDo) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  constexpr int kSize = 64, kTerms = 300;
  Matrix<float> left = {std::vector<float>(kSize * kTerms), kTerms, 1},
                right = {std::vector<float>(kSize * kTerms), kSize, 1};
  for (float& x : left.elements) x = normal(random);
  for (float& x : right.elements) x = normal(random);
  fl::product<float>(kSize, kSize, kTerms, left.places(), right.places(),
                     [&](int i, int j, float sum) {
                       double expected = 0, size = 0;
                       for (int k = 0; k < kTerms; ++k) {
                         expected += double{left(i, k)} * double{right(k, j)};
                         size += std::abs(double{left(i, k)} * double{right(k, j)});
                       }
                       EXPECT_NEAR(sum, expected, size * 20 * 0x1p-24);
                     });
}

TEST(RuntimeSums, OfEveryLength) {
  const auto numbers = whole_numbers<double>(200, 5);
  for (int begin : {0, 3})
    for (int end = begin; end < 200; ++end) {
      double sum = 0, largest = -INFINITY, smallest = INFINITY;
      for (int i = begin; i < end; ++i) {
        const double x = numbers[static_cast<size_t>(i)];
        sum += x, largest = std::max(largest, x), smallest = std::min(smallest, x);
      }
      const auto number = [&](int i) { return numbers[static_cast<size_t>(i)]; };
      const auto single = [&](int i) { return static_cast<float>(number(i)); };
      EXPECT_EQ(fl::sum<double>(begin, end, number), sum);
      EXPECT_EQ(fl::largest<double>(begin, end, number), largest);
      EXPECT_EQ(fl::smallest<double>(begin, end, number), smallest);
      EXPECT_EQ(fl::sum<float>(begin, end, single), sum);
      EXPECT_EQ(fl::largest<float>(begin, end, single), largest);
      EXPECT_EQ(fl::smallest<float>(begin, end, single), smallest);
    }
}

template <int kOuter, int kColumns>
void expect_sums_of_several_indices() {
  const auto numbers = whole_numbers<double>(kOuter * 5 * kColumns, 6);
  double sum = 0, largest = -INFINITY, smallest = INFINITY;
  const auto number = [&](int i, int j, int k) {
    return numbers[static_cast<size_t>((i * 5 + j) * kColumns + k)];
  };
  for (const double x : numbers)
    sum += x, largest = std::max(largest, x), smallest = std::min(smallest, x);
  EXPECT_EQ((fl::sum<double, kOuter, 5, kColumns>(number)), sum);
  EXPECT_EQ((fl::sum<float, kOuter, 5, kColumns>(number)), sum);
  EXPECT_EQ((fl::largest<double, kOuter, 5, kColumns>(number)), largest);
  EXPECT_EQ((fl::smallest<float, kOuter, 5, kColumns>(number)), smallest);
}

TEST(RuntimeSums, OfSeveralIndices) {
  expect_sums_of_several_indices<1, 16>();
  expect_sums_of_several_indices<3, 17>();
  expect_sums_of_several_indices<2, 31>();
  expect_sums_of_several_indices<3, 32>();
  expect_sums_of_several_indices<2, 70>();
  expect_sums_of_several_indices<4, 3>();
}

TEST(RuntimeSums, OfNaNAreNaN) {
  for (int place = 0; place < 70; ++place) {
    const auto x = [&](int i) { return i == place ? NAN : static_cast<float>(i); };
    EXPECT_TRUE(std::isnan(fl::sum<float>(70, x)));
    EXPECT_TRUE(std::isnan(fl::largest<float>(70, x))) << place;
    EXPECT_TRUE(std::isnan(fl::smallest<float>(70, x))) << place;
  }
}

}  // namespace
