// The interpreter of loop forms against plain C++ loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/eval/loop_program.h"

namespace composit {
namespace {

// The extents of interest: none, one, few, and those around a block.
constexpr int64_t kExtents[] = {0, 1, 2, 3, 7, 17, 511, 512, 513, 1100};

// --- Reductions -------------------------------------------------------------------------------

TEST(Loops, SumsOfRowsAndColumns) {
  for (const int64_t rows : {1, 3, 600})
    for (const int64_t columns : kExtents) {
      const Array x = waves<float>({rows, columns}, 1);
      const auto numbers = values<float>(x);
      std::vector<double> row_sums(rows), column_sums(columns);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          row_sums[i] += numbers[i * columns + j];
          column_sums[j] += numbers[i * columns + j];
        }
      const Program by_row{{f32_type({rows})},
                           {reduction({{"i", rows}, {"j", columns, kReduction}}, 0,
                                      f32(0, {kI, kJ}), Function::add, {kI})}};
      const Program by_column{{f32_type({columns})},
                              {reduction({{"j", columns}, {"i", rows, kReduction}}, 0,
                                         f32(0, {kJ, kI}), Function::add, {kI})}};
      const auto first = values<float>(by_row({x})[0]), second = values<float>(by_column({x})[0]);
      for (int64_t i = 0; i < rows; ++i) ASSERT_EQ(first[i], static_cast<float>(row_sums[i]));
      for (int64_t j = 0; j < columns; ++j)
        ASSERT_EQ(second[j], static_cast<float>(column_sums[j]));
    }
}

TEST(Loops, SumsOfFloatsAreAccumulatedInDouble) {
  std::vector<double> numbers(1000, 1);
  numbers[0] = 0x1p24;
  numbers[999] = -0x1p24;
  const auto sum = [&](auto one) {
    const Array x = array<decltype(one)>({1000}, numbers);
    return Program{{tensor_type(x.type().dtype, {})},
                   {reduction({{"r", 1000, kReduction}}, 0, load(0, x.type().dtype, {kI}),
                              Function::add, {})}}({x})[0];
  };
  EXPECT_EQ(values<float>(sum(1.0f))[0], 998);
  numbers[0] = 256;
  numbers[999] = -256;
  EXPECT_EQ(static_cast<float>(values<BFloat16>(sum(BFloat16(1)))[0]), 1000);  // 998 rounded
}

// y[i, j] = sum of x[i, k] w[k, j], operands of any strides.
TEST(Loops, MatrixProductOfStridedOperands) {
  const int64_t m = 5, n = 600, inner = 37;
  const Array x = waves<float>({inner, m}, 1), w = waves<float>({inner, n}, 2);
  Type transposed = f32_type({m, inner});
  transposed.strides = {1, m};
  Type reversed = f32_type({inner, n});
  reversed.strides = {-n, 1};
  const auto* last_row = reinterpret_cast<const float*>(w.data()) + (inner - 1) * n;
  const Program product{{f32_type({m, n})},
                        {reduction({{"i", m}, {"j", n}, {"k", inner, kReduction}}, 0,
                                   f32(0, {kI, kK}) * f32(1, {kK, kJ}), Function::add, {kI, kJ})}};
  const auto y = values<float>(
      product({Array(transposed, x.owner(), x.data()), Array(reversed, w.owner(), last_row)})[0]);
  const auto a = values<float>(x), b = values<float>(w);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k) sum += a[k * m + i] * b[(inner - 1 - k) * n + j];
      ASSERT_EQ(y[i * n + j], static_cast<float>(sum)) << i << " " << j;
    }
}

TEST(Loops, RepeatedOperandsHaveStrideZero) {
  const Array x = array<double>({3}, {1, 2, 3});
  Type rows = tensor_type(DType::float64, {2, 3});
  rows.strides = {0, 1};
  const Program copy{{tensor_type(DType::float64, {2, 3})},
                     {{.axes = {{"i", 2}, {"j", 3}},
                       .stores = {{0, {kI, kJ}, load(0, DType::float64, {kI, kJ}) * 2}}}}};
  EXPECT_EQ(values<double>(copy({Array(rows, x.owner(), x.data())})[0]),
            (std::vector<double>{2, 4, 6, 2, 4, 6}));
}

TEST(Loops, FlippedAndSteppedIndices) {
  const int64_t n = 1100;
  const Array x = waves<float>({n}, 1);
  const Program flip{
      {f32_type({n}), f32_type({n / 2})},
      {{.axes = {{"i", n}}, .stores = {{0, {kI}, f32(0, {n - 1 - kI})}}},
       {.axes = {{"i", n / 2}}, .stores = {{1, {n / 2 - 1 - kI}, f32(0, {-(-2 * kI)})}}}}};
  const auto y = flip({x});
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(values<float>(y[0])[i], values<float>(x)[n - 1 - i]);
  for (int64_t i = 0; i < n / 2; ++i)
    ASSERT_EQ(values<float>(y[1])[n / 2 - 1 - i], values<float>(x)[2 * i]);
}

struct Convolution {
  int64_t groups, in, out, kernel, stride, padding, dilation, size;
  int64_t result() const { return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }
};

// Padding is what the domain leaves out.
Program convolution(const Convolution& c) {
  const Expr g = Expr::axis(0), o = Expr::axis(1), y = Expr::axis(2), x = Expr::axis(3),
             ci = Expr::axis(4), ky = Expr::axis(5), kx = Expr::axis(6);
  const Expr row = y * c.stride - c.padding + ky * c.dilation;
  const Expr column = x * c.stride - c.padding + kx * c.dilation;
  Statement statement =
      reduction({{"g", c.groups},
                 {"o", c.out},
                 {"y", c.result()},
                 {"x", c.result()},
                 {"c", c.in, kReduction},
                 {"ky", c.kernel, kReduction},
                 {"kx", c.kernel, kReduction}},
                0, f32(0, {g * c.in + ci, row, column}) * f32(1, {g * c.out + o, ci, ky, kx}),
                Function::add, {g * c.out + o, y, x});
  statement.domain = row >= 0 && row < c.size && column >= 0 && column < c.size;
  return {{f32_type({c.groups * c.out, c.result(), c.result()})}, {statement}};
}

TEST(Loops, ConvolutionWithStridePaddingDilationAndGroups) {
  const Convolution cases[] = {{1, 3, 4, 3, 1, 1, 1, 9},  {2, 2, 3, 3, 2, 1, 1, 10},
                               {1, 2, 2, 3, 1, 2, 2, 11}, {3, 1, 1, 5, 3, 4, 1, 7},
                               {1, 40, 2, 1, 1, 0, 1, 3}, {1, 1, 1, 3, 1, 5, 1, 2}};
  for (const Convolution& c : cases) {
    const Array x = waves<float>({c.groups * c.in, c.size, c.size}, 1);
    const Array w = waves<float>({c.groups * c.out, c.in, c.kernel, c.kernel}, 2);
    const auto y = values<float>(convolution(c)({x, w})[0]), a = values<float>(x),
               b = values<float>(w);
    const int64_t n = c.result();
    for (int64_t o = 0; o < c.groups * c.out; ++o)
      for (int64_t at = 0; at < n * n; ++at) {
        double sum = 0;
        for (int64_t i = 0; i < c.in; ++i)
          for (int64_t k = 0; k < c.kernel * c.kernel; ++k) {
            const int64_t row = at / n * c.stride - c.padding + k / c.kernel * c.dilation;
            const int64_t column = at % n * c.stride - c.padding + k % c.kernel * c.dilation;
            if (row < 0 || row >= c.size || column < 0 || column >= c.size) continue;
            sum += a[((o / c.out * c.in + i) * c.size + row) * c.size + column] *
                   b[(o * c.in + i) * c.kernel * c.kernel + k];
          }
        ASSERT_EQ(y[o * n * n + at], static_cast<float>(sum));
      }
  }
}

// The transposed convolution's domain lets every second point through.
TEST(Loops, DomainWithGaps) {
  const int64_t n = 700;
  const Array x = waves<float>({n}, 1);
  Statement statement = reduction({{"y", 2 * n + 1}, {"k", 3, kReduction}}, 0,
                                  f32(0, {floor_divide(kI - kJ, 2)}), Function::add, {kI});
  statement.domain = kI - kJ >= 0 && kI - kJ < 2 * n && eq(remainder(kI - kJ, 2), 0);
  const auto y = values<float>(Program{{f32_type({2 * n + 1})}, {statement}}({x})[0]);
  std::vector<double> expected(2 * n + 3);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < 3; ++k) expected[2 * i + k] += values<float>(x)[i];
  for (int64_t i = 0; i < 2 * n + 1; ++i) ASSERT_EQ(y[i], static_cast<float>(expected[i])) << i;
}

// --- Accumulators that depend on each other ---------------------------------------------------

Program first_maximum(int64_t rows, int64_t columns) {
  const Expr better = Expr::right(0, DType::float32) > Expr::left(0, DType::float32);
  const auto choose = [&](size_t k, DType dtype) {
    return select(better, Expr::right(k, dtype), Expr::left(k, dtype));
  };
  return {{f32_type({rows}), tensor_type(DType::int64, {rows})},
          {{.axes = {{"i", rows}, {"j", columns, kReduction}},
            .init = {-INFINITY, -1},
            .body = {f32(0, {kI, kJ}), kJ},
            .combine = {choose(0, DType::float32), choose(1, DType::int64)},
            .stores = {{0, {kI}, Expr::accumulator(0, DType::float32)},
                       {1, {kI}, Expr::accumulator(1, DType::int64)}}}}};
}

TEST(Loops, FirstMaximumAndItsIndex) {
  for (const int64_t rows : {1, 2, 700})
    for (const int64_t columns : {1, 2, 5, 513, 1100}) {
      std::vector<double> numbers;
      for (int64_t i = 0; i < rows * columns; ++i)
        numbers.push_back(static_cast<double>(i * 7919 % 5));  // with many ties
      const auto y = first_maximum(rows, columns)({array<float>({rows, columns}, numbers)});
      for (int64_t i = 0; i < rows; ++i) {
        const auto row = numbers.begin() + i * columns;
        const auto largest = std::max_element(row, row + columns);
        ASSERT_EQ(values<float>(y[0])[i], static_cast<float>(*largest));
        ASSERT_EQ(values<int64_t>(y[1])[i], largest - row) << rows << " " << columns;
      }
    }
}

// Composition of x -> a x + b is associative, but the order counts: row-major, as axes stand.
TEST(Loops, OrderOfPointsIsKept) {
  const DType dtype = DType::float64;
  const Expr la = Expr::left(0, dtype), lb = Expr::left(1, dtype), ra = Expr::right(0, dtype),
             rb = Expr::right(1, dtype);
  for (const int64_t rows : {1, 600})
    for (const int64_t n : {3, 100, 1025})
      for (const int64_t inner : {1, 2, 7}) {
        const std::vector<double> a = waves(n * inner, 1), b = waves(n * inner, 2);
        const Expr at = kJ * inner + kK;
        const Program compose{
            {tensor_type(dtype, dims({rows}))},
            {{.axes = {{"i", rows}, {"r", n, kReduction}, {"s", inner, kReduction}},
              .init = {1.0, 0.0},
              .body = {load(0, dtype, {at}), load(1, dtype, {at})},
              .combine = {ra * la, ra * lb + rb},
              .stores = {{0, {kI}, Expr::accumulator(1, dtype)}}}}};
        double x = 0;
        for (int64_t i = 0; i < n * inner; ++i) x = a[i] * x + b[i];
        const auto y = compose({array<double>({n * inner}, a), array<double>({n * inner}, b)});
        for (const double found : values<double>(y[0])) ASSERT_NEAR(found, x, 1e-14);
      }
}

TEST(Loops, MinimumKeepsNaN) {
  for (const int64_t rows : {1, 600}) {
    std::vector<double> numbers = waves(rows * 5, 1);
    numbers[3] = NAN;
    const Program least{{f32_type({rows})},
                        {reduction({{"i", rows}, {"r", 5, kReduction}}, INFINITY, f32(0, {kI, kJ}),
                                   Function::min, {kI})}};
    const auto y = values<float>(least({array<float>({rows, 5}, numbers)})[0]);
    EXPECT_TRUE(std::isnan(y[0]));
    for (int64_t i = 1; i < rows; ++i)
      ASSERT_EQ(y[i], static_cast<float>(*std::min_element(&numbers[5 * i], &numbers[5 * i] + 5)));
  }
}

// --- Scans ------------------------------------------------------------------------------------

TEST(Loops, RunningSums) {
  for (const int64_t rows : {1, 3, 600})
    for (const int64_t columns : {0, 1, 5, 40}) {
      const Array x = waves<double>({rows, columns}, 1);
      Statement statement = reduction({{"i", rows}, {"j", columns, kScan}}, 10.0,
                                      load(0, DType::float64, {kI, kJ}), Function::add, {kI, kJ});
      const auto y = values<double>(Program{{x.type()}, {statement}}({x})[0]);
      statement.domain = ne(kJ, 1);  // leaves out a column, which stays zero
      const auto z = values<double>(Program{{x.type()}, {statement}}({x})[0]);
      for (int64_t i = 0; i < rows; ++i) {
        double sum = 10, sum_without = 10;
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t at = i * columns + j;
          ASSERT_EQ(y[at], sum += values<double>(x)[at]);
          if (j != 1) sum_without += values<double>(x)[at];
          ASSERT_EQ(z[at], j == 1 ? 0 : sum_without);
        }
      }
    }
}

TEST(Loops, ScanOverReductions) {  // y[t] = sum over s <= t and r of x[s, r]
  const Array x = array<double>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Program program{{tensor_type(DType::float64, {3})},
                        {reduction({{"t", 3, kScan}, {"r", 2, kReduction}}, 0.0,
                                   load(0, DType::float64, {kI, kJ}), Function::add, {kI})}};
  EXPECT_EQ(values<double>(program({x})[0]), (std::vector<double>{3, 10, 21}));
}

// --- Stores -----------------------------------------------------------------------------------

TEST(Loops, ScatterAdds) {
  const int64_t n = 1500;
  const Array x = waves<float>({n}, 1);
  std::vector<double> at, sums(7);
  for (int64_t i = 0; i < n; ++i) {
    at.push_back(static_cast<double>(i * i % 7));
    sums[i * i % 7] += values<float>(x)[i];
  }
  const Program scatter{
      {f32_type({7})}, {{.axes = {{"i", n}}, .stores = {{0, {i64(1, {kI})}, f32(0, {kI}), true}}}}};
  const auto y = values<float>(scatter({x, array<int64_t>({n}, at)})[0]);
  for (size_t k = 0; k < 7; ++k) EXPECT_EQ(y[k], static_cast<float>(sums[k]));
  at[700] = 7;
  EXPECT_EQ(error_of(scatter, {x, array<int64_t>({n}, at)}),
            "index 7 is out of range for axis 0 of size 7");
}

TEST(Loops, AddedIntegersWrapAndAddedBoolsAreOr) {
  const auto total = [](auto zero, const std::vector<double>& numbers) {
    using S = decltype(zero);
    const auto n = static_cast<int64_t>(numbers.size());
    const Array x = array<S>({n}, numbers);
    const DType dtype = x.type().dtype;
    const Program add{{tensor_type(dtype, {})},
                      {{.axes = {{"i", n}}, .stores = {{0, {}, load(0, dtype, {kI}), true}}}}};
    return values<uint8_t>(Program(add)({x})[0])[0];
  };
  EXPECT_EQ(total(int8_t(), {100, 100, 100}), 44);
  EXPECT_EQ(total(uint8_t(), {200, 100}), 44);
  EXPECT_EQ(total(bool(), {1, 1, 0}), 1);
}

// As `cat` and `index_put`: one statement after the other into the same result.
TEST(Loops, StatementsShareResults) {
  const Array x = array<float>({2}, {1, 2}), y = array<float>({3}, {3, 4, 5});
  const Program cat{{f32_type({5})},
                    {{.axes = {{"i", 2}}, .stores = {{0, {kI}, f32(0, {kI})}}},
                     {.axes = {{"i", 3}}, .stores = {{0, {kI + 2}, f32(1, {kI})}}},
                     {.axes = {}, .stores = {{0, {1}, 0.5, true}}}}};
  EXPECT_EQ(values<float>(cat({x, y})[0]), (std::vector<float>{1, 2.5, 3, 4, 5}));
}

TEST(Loops, StoresToOutOfRangePlacesAreErrors) {
  const Program shift{{f32_type({5})},
                      {{.axes = {{"i", 5}}, .stores = {{0, {kI - 1}, f32(0, {kI})}}}}};
  EXPECT_EQ(error_of(shift, {waves<float>({5}, 1)}),
            "index -1 is out of range for axis 0 of size 5");
}

}  // namespace
}  // namespace composit
