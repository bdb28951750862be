// The interpreter's loads: values, faults and dtypes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/eval/loop_program.h"

namespace composit {
namespace {

// --- Loads ------------------------------------------------------------------------------------

TEST(Loops, EmbeddingAndItsOutOfRangeIndex) {
  const Array table = waves<float>({5, 600}, 1);
  const Program embedding{{f32_type({3, 600})},
                          {{.axes = {{"i", 3}, {"j", 600}},
                            .stores = {{0, {kI, kJ}, f32(0, {load(1, DType::int32, {kI}), kJ})}}}}};
  const auto y = values<float>(embedding({table, array<int32_t>({3}, {4, 0, 4})})[0]);
  for (int64_t j = 0; j < 600; ++j) {
    ASSERT_EQ(y[j], values<float>(table)[4 * 600 + j]);
    ASSERT_EQ(y[600 + j], values<float>(table)[j]);
  }
  EXPECT_EQ(error_of(embedding, {table, array<int32_t>({3}, {4, 7, 0})}),
            "index 7 is out of range for axis 0 of size 5");
  EXPECT_EQ(error_of(embedding, {table, array<int32_t>({3}, {4, 0, -1})}),
            "index -1 is out of range for axis 0 of size 5");
}

// 2^62 * 4 is 0 again.
TEST(Loops, IndicesThatOverflowAreOutOfRangeToo) {
  const Array x = array<float>({5}, {1, 2, 3, 4, 5});
  const auto at = [](const Expr& index) {
    return Program{{f32_type({5})}, {{.axes = {{"i", 5}}, .stores = {{0, {kI}, f32(0, {index})}}}}};
  };
  EXPECT_EQ(error_of(at(kI * (int64_t{1} << 62)), {x}),
            "index 4611686018427387904 is out of range for axis 0 of size 5");
  EXPECT_EQ(error_of(at(kI + std::numeric_limits<int64_t>::max()), {x}),
            "index 9223372036854775807 is out of range for axis 0 of size 5");
}

TEST(Loops, SelectGuardsLoadsAndDivisions) {
  for (const int64_t n : {1, 5, 1100}) {
    const Array x = waves<float>({n}, 1);
    const Expr at = kI - 2;
    const auto padded = [&](const Expr& guard) {
      return Program{{f32_type({n + 4})},
                     {{.axes = {{"i", n + 4}},
                       .stores = {{0, {kI}, select(guard, f32(0, {at}) * 2 + 1, -1)}}}}};
    };
    const auto y = values<float>(padded(at >= 0 && at < n)({x})[0]);
    for (int64_t i = 0; i < n + 4; ++i)
      ASSERT_EQ(y[i], i < 2 || i >= n + 2 ? -1 : values<float>(x)[i - 2] * 2 + 1);
    EXPECT_EQ(
        error_of(padded(at >= 0), {x}),
        "index " + std::to_string(n) + " is out of range for axis 0 of size " + std::to_string(n));
  }
  const Array divisors = array<int64_t>({4}, {2, 0, -2, 0});
  const Expr divisor = i64(0, {kI}), quotient = floor_divide(7, divisor);
  const auto divide = [&](const Expr& value) {
    return Program{{tensor_type(DType::int64, {4})},
                   {{.axes = {{"i", 4}}, .stores = {{0, {kI}, value}}}}};
  };
  EXPECT_EQ(values<int64_t>(divide(select(eq(divisor, 0), 0, quotient))({divisors})[0]),
            (std::vector<int64_t>{3, 0, -4, 0}));
  EXPECT_EQ(error_of(divide(quotient), {divisors}), "[floor_divide] integer division by zero");
  EXPECT_EQ(error_of(divide(select(quotient > 0, 1, 2)), {divisors}),
            "[floor_divide] integer division by zero");
}

// A faulty index makes the load that uses it faulty, and so on to where it is not taken.
TEST(Loops, FaultsGoWithTheValue) {
  const Array x = array<float>({3}, {10, 20, 30}), at = array<int64_t>({4}, {0, 2, 9, 1});
  const Expr inner = i64(1, {kI + 1}), deep = exp(f32(0, {inner})) + 1;
  const Program guarded{
      {f32_type({4})},
      {{.axes = {{"i", 4}}, .stores = {{0, {kI}, select(kI < 1 || eq(kI, 2), deep, 5)}}}}};
  const auto y = values<float>(guarded({x, at})[0]);
  EXPECT_EQ(y, (std::vector<float>{std::exp(30.0f) + 1, 5, std::exp(20.0f) + 1, 5}));
  const Program bare{{f32_type({4})}, {{.axes = {{"i", 4}}, .stores = {{0, {kI}, deep}}}}};
  EXPECT_EQ(error_of(bare, {x, at}), "index 9 is out of range for axis 0 of size 3");
}

TEST(Loops, PointsOutsideOfTheDomainAreNotEvaluated) {
  const int64_t n = 1100;
  const Array x = waves<float>({n}, 1);
  Statement copy{.axes = {{"i", 2 * n}}, .stores = {{0, {kI}, f32(0, {kI - 300})}}};
  copy.domain = kI >= 300 && kI < n + 300;
  const auto y = values<float>(Program{{f32_type({2 * n})}, {copy}}({x})[0]);
  for (int64_t i = 0; i < 2 * n; ++i)
    ASSERT_EQ(y[i], i >= 300 && i < n + 300 ? values<float>(x)[i - 300] : 0);
  const Statement ones{.axes = copy.axes, .domain = f32(0, {kI}) > 0, .stores = {{0, {kI}, 1}}};
  EXPECT_EQ(error_of({{f32_type({2 * n})}, {ones}}, {x}),
            "index 1100 is out of range for axis 0 of size 1100");
}

TEST(Loops, EmptyExtents) {
  const Array nothing = array<float>({3, 0}, {});
  const Program sum{
      {f32_type({3})},
      {reduction({{"i", 3}, {"j", 0, kReduction}}, 7, f32(0, {kI, kJ}), Function::add, {kI})}};
  EXPECT_EQ(values<float>(sum({nothing})[0]), (std::vector<float>{7, 7, 7}));
  const Program none{
      {f32_type({0})},
      {reduction({{"i", 0}, {"j", 3, kReduction}}, 7, f32(0, {kJ, kI}), Function::add, {kI})}};
  EXPECT_EQ(none({nothing})[0].type().numel(), 0);
  Statement outside =
      reduction({{"i", 3}, {"j", 5, kReduction}}, 7, f32(0, {kI, kJ}), Function::add, {kI});
  outside.domain = kJ < 0;
  EXPECT_EQ(values<float>(Program{{f32_type({3})}, {outside}}({nothing})[0]),
            (std::vector<float>{7, 7, 7}));
}

// --- Dtypes -----------------------------------------------------------------------------------

// y = f(x) for every element.
template <class R, class S>
std::vector<R> map(const std::vector<double>& numbers, Expr (*f)(Expr)) {
  const auto n = static_cast<int64_t>(numbers.size());
  const Array x = array<S>({n}, numbers);
  const Expr value = f(load(0, x.type().dtype, {kI}));
  const Program program{{tensor_type(dtype_of<R>(), dims({n}))},
                        {{.axes = {{"i", n}}, .stores = {{0, {kI}, value}}}}};
  return values<R>(program({x})[0]);
}

TEST(Loops, NarrowIntegersWrapBetweenFunctions) {
  EXPECT_EQ((map<int8_t, int8_t>({100, -100}, [](Expr x) { return (x + x) * 2; })),
            (std::vector<int8_t>{-112, 112}));
  EXPECT_EQ((map<bool, uint8_t>({255, 1}, [](Expr x) { return x + 1 > x; })),
            (std::vector<bool>{false, true}));
  EXPECT_EQ((map<int64_t, int64_t>({0x1p53}, [](Expr x) { return x + 1; })),
            (std::vector<int64_t>{(int64_t{1} << 53) + 1}));
  EXPECT_EQ((map<uint64_t, uint64_t>({0x1p63}, [](Expr x) { return floor_divide(x, 2); })),
            (std::vector<uint64_t>{uint64_t{1} << 62}));
}

TEST(Loops, SixteenBitFloatsAreRoundedWhereStoredOrCast) {
  const auto bits = map<BFloat16, BFloat16>({1, 3}, [](Expr x) { return x / 3; });
  EXPECT_EQ(bits[0].bits, BFloat16(1.0f / 3).bits);
  EXPECT_EQ(bits[1].bits, BFloat16(1).bits);
  // 1 + 2^-9 is 1 in bfloat16; the sum is not rounded in between, but a cast rounds it.
  EXPECT_EQ((map<float, BFloat16>({1}, [](Expr x) { return (x + 0x1p-9) - 1; }))[0], 0x1p-9f);
  EXPECT_EQ((map<float, Half>({1},
                              [](Expr x) {
                                return cast(cast(cast(x, DType::float32) + 0x1p-12, DType::float16),
                                            DType::float32) -
                                       1;
                              }))[0],
            0);
  EXPECT_EQ((map<Half, float>({65520}, [](Expr x) { return x; }))[0].bits, 0x7c00);
}

TEST(Loops, ComplexMatrixProduct) {
  using C = std::complex<float>;
  const std::vector<C> a = {{1, 2}, {3, -1}, {0, 1}, {2, 2}},
                       b = {{1, 0}, {0, 1}, {-1, 1}, {2, -3}};
  const Type type = tensor_type(DType::complex64, {2, 2});
  const auto at = [](size_t number, Expr i, Expr j) {
    return load(number, DType::complex64, {i, j});
  };
  const Program product{{type},
                        {reduction({{"i", 2}, {"j", 2}, {"k", 2, kReduction}}, 0,
                                   at(0, kI, kK) * conj(at(1, kK, kJ)), Function::add, {kI, kJ})}};
  const auto y =
      values<C>(product({Array::copy_of(type, a.data()), Array::copy_of(type, b.data())})[0]);
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 2; ++j)
      EXPECT_EQ(y[2 * i + j], a[2 * i] * std::conj(b[j]) + a[2 * i + 1] * std::conj(b[2 + j]));
}

TEST(Loops, EveryComputableDTypeIsCopied) {
  for (int number = 0; number < static_cast<int>(DType::count_); ++number) {
    const auto dtype = static_cast<DType>(number);
    if (!is_computable(dtype)) continue;
    for (const int64_t n : {3, 600}) {
      const Type type = tensor_type(dtype, dims({n}));
      std::vector<uint8_t> bytes(static_cast<size_t>(type.nbytes()));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 2);
      const Array x = Array::copy_of(type, bytes.data());
      const Program copy{{type},
                         {{.axes = {{"i", n}}, .stores = {{0, {kI}, load(0, dtype, {kI})}}}}};
      EXPECT_EQ(copy({x})[0], x) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace composit
