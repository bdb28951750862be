// Tensors whose sizes are types, compared with sums by hand in float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "flashlight/fixed/fixed.h"

namespace flashlight::fixed {
namespace {

using testing::ElementsAre;

template <class X>
X random_tensor(unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  X x;
  for (auto& one : x) one = static_cast<typename X::Element>(number(generator));
  return x;
}

TEST(Fixed, HasItsElementsAtTheirIndices) {
  const auto x = Tensor<float, 2, 3>::of(1, 2, 3, 4, 5, 6);
  EXPECT_EQ(x(1, 0), 4);
  EXPECT_THROW(x(2, 0), std::out_of_range);
  EXPECT_THROW(x(0, -1), std::out_of_range);
  EXPECT_THAT((Tensor<int, 3>::arange()), ElementsAre(0, 1, 2));
  EXPECT_EQ((Tensor<float, 2, 2>()), (Tensor<float, 2, 2>::full(0)));
}

TEST(Fixed, ACopyHasItsOwnElements) {
  using Large = Tensor<float, 100, 1000>;  // on the heap
  Large x = Large::full(1), y = x;
  y(99, 999) = 2;
  EXPECT_EQ(x(99, 999), 1);
  x = y;
  EXPECT_EQ(x(99, 999), 2);
  Large z = std::move(x);
  x = z;  // NOLINT: what was moved from may be assigned to
  EXPECT_EQ(x(99, 999), 2);
}

TEST(Fixed, Broadcasts) {
  const auto x = Tensor<float, 2, 3>::of(1, 2, 3, 4, 5, 6);
  const auto row = Tensor<float, 3>::of(10, 20, 30);
  const auto column = Tensor<float, 2, 1>::of(100, 200);
  EXPECT_THAT(x + row, ElementsAre(11, 22, 33, 14, 25, 36));
  EXPECT_THAT(column - x, ElementsAre(99, 98, 97, 196, 195, 194));
  EXPECT_THAT(column + row, ElementsAre(110, 120, 130, 210, 220, 230));
  EXPECT_THAT(1 - x / 2, ElementsAre(.5f, 0, -.5f, -1, -1.5f, -2));
  EXPECT_THAT(x > row / 5, ElementsAre(false, false, false, true, true, false));
  EXPECT_THAT(where(x > 2, row, x), ElementsAre(1, 2, 30, 10, 20, 30));
}

TEST(Fixed, NotANumberStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto x = Tensor<float, 2>::of(nan, 1), y = Tensor<float, 2>::of(2, nan);
  for (const float one : maximum(x, y)) EXPECT_TRUE(std::isnan(one));
  for (const float one : minimum(x, y)) EXPECT_TRUE(std::isnan(one));
  EXPECT_TRUE(std::isnan(float(amax(x))));
  EXPECT_TRUE(std::isnan(relu(x)(0)));
}

TEST(Fixed, ReducesOverAxes) {
  const auto x = Tensor<float, 2, 3, 2>::arange();
  EXPECT_THAT((sum<1>(x)), ElementsAre(6, 9, 24, 27));
  EXPECT_THAT((sum<0, 2>(x)), ElementsAre(14, 22, 30));
  EXPECT_THAT((amax<-1>(x)), ElementsAre(1, 3, 5, 7, 9, 11));
  EXPECT_THAT((mean<0>(x, keep)), ElementsAre(3, 4, 5, 6, 7, 8));
  static_assert(std::is_same_v<decltype(mean<0>(x, keep)), Tensor<float, 1, 3, 2>>);
  EXPECT_EQ(float(sum(x)), 66);
  EXPECT_EQ(float(sum(Tensor<float, 0>())), 0);
}

TEST(Fixed, MovesElements) {
  const auto x = Tensor<int, 2, 3>::arange();
  EXPECT_THAT(transpose(x), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT((transpose<2, 0, 1>(reshape<1, 2, 3>(x))), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT((reshape<3, 2>(x)), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(to<float>(x) / 2, ElementsAre(0, .5f, 1, 1.5f, 2, 2.5f));
}

TEST(Fixed, SoftmaxDoesNotOverflow) {
  const auto y = softmax<0>(Tensor<float, 2, 2>::of(1000, -1000, 1000, 0));
  EXPECT_THAT(y, ElementsAre(.5f, 0, .5f, 1));
}

TEST(Fixed, FunctionsAreThoseOfTheLibrary) {
  const auto x = random_tensor<Tensor<double, 50>>(1) * 3;
  const auto expect = [&](const auto& y, double (*f)(double)) {
    for (int i = 0; i < 50; ++i) EXPECT_NEAR(y(i), f(x(i)), 1e-14 * std::abs(f(x(i))) + 1e-15) << i;
  };
  expect(exp(x), std::exp);
  expect(tanh(x), std::tanh);
  expect(erf(x), std::erf);
  expect(sin(x), std::sin);
  expect(cos(x), std::cos);
  expect(sigmoid(x), [](double one) { return 1 / (1 + std::exp(-one)); });
  expect(gelu(x), [](double one) { return one * .5 * (1 + std::erf(one * std::sqrt(.5))); });
  expect(abs(-x), [](double one) { return std::abs(one); });
  expect(sqrt(x * x), [](double one) { return std::abs(one); });
  expect(log(x * x), [](double one) { return std::log(one * one); });
}

// Largest difference of a product from that in float64, by the largest sum of magnitudes.
template <class T, int64_t kRows, int64_t kTerms, int64_t kColumns>
double error_of_product() {
  const auto a = random_tensor<Tensor<T, kRows, kTerms>>(1);
  const auto b = random_tensor<Tensor<T, kTerms, kColumns>>(2);
  const auto c = matmul(a, b);
  double error = 0;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < kTerms; ++k) {
        sum += double(a(i, k)) * double(b(k, j));
        size += std::abs(double(a(i, k)) * double(b(k, j)));
      }
      error = std::max(error, std::abs(double(c(i, j)) - sum) / size);
    }
  return error / std::numeric_limits<T>::epsilon();
}

TEST(FixedProduct, OfAllSizes) {
  // A sum of n rounded terms is wrong by n/2 units at most; these have 33.
  const auto expect = [](double error) { EXPECT_LE(error, 17); };
  expect(error_of_product<float, 2, 2, 2>());
  expect(error_of_product<float, 4, 4, 4>());
  expect(error_of_product<double, 2, 2, 2>());
  expect(error_of_product<double, 4, 4, 4>());
  expect(error_of_product<float, 1, 1, 1>());
  expect(error_of_product<float, 3, 5, 7>());
  expect(error_of_product<float, 8, 8, 8>());
  expect(error_of_product<float, 16, 16, 16>());
  expect(error_of_product<float, 32, 32, 32>());
  expect(error_of_product<float, 33, 17, 31>());
  expect(error_of_product<double, 33, 17, 31>());
  expect(error_of_product<float, 1, 33, 129>());
  expect(error_of_product<float, 67, 3, 1>());
  expect(error_of_product<double, 5, 33, 3>());
}

TEST(FixedProduct, OfVectorsAndBatches) {
  const auto a = Tensor<float, 2, 2, 3>::arange();
  const auto b = Tensor<float, 3, 2>::of(1, 0, 0, 1, 1, 1);
  EXPECT_THAT(matmul(a, b), ElementsAre(2, 3, 8, 9, 14, 15, 20, 21));
  const auto v = Tensor<float, 3>::of(1, 2, 3);
  EXPECT_THAT(matmul(a, v), ElementsAre(8, 26, 44, 62));
  EXPECT_EQ(float(matmul(v, v)), 14);
  EXPECT_THAT(matmul(v, b), ElementsAre(4, 5));
  EXPECT_THAT((matmul(Tensor<int, 2, 2>::of(1, 2, 3, 4), Tensor<int, 2, 2>::of(5, 6, 7, 8))),
              ElementsAre(19, 22, 43, 50));
  static_assert(
      std::is_same_v<decltype(matmul(Tensor<float, 5, 1, 2, 3>(), Tensor<float, 7, 3, 4>())),
                     Tensor<float, 5, 7, 2, 4>>);
  EXPECT_THAT((linear(v, Tensor<float, 2, 3>::of(1, 1, 1, 0, 0, 1), Tensor<float, 2>::of(.5, 1))),
              ElementsAre(6.5f, 4));
}

TEST(FixedProduct, OfNothing) {
  EXPECT_EQ((matmul(Tensor<float, 0, 3>(), Tensor<float, 3, 2>()).kElements), 0);
  EXPECT_EQ((linear(Tensor<float, 0, 3>(), Tensor<float, 4, 3>()).kElements), 0);
  EXPECT_EQ((einsum<"ij,jk->ik">(Tensor<float, 0, 3>(), Tensor<float, 3, 2>()).kElements), 0);
  EXPECT_EQ((softmax<-1>(Tensor<float, 2, 0>()).kElements), 0);
  EXPECT_EQ((amax<0>(Tensor<float, 2, 0>()).kElements), 0);
  EXPECT_THAT((matmul(Tensor<float, 1, 0>(), Tensor<float, 0, 2>())), ElementsAre(0, 0));
}

}  // namespace
}  // namespace flashlight::fixed
