// Promotion against torch 2.13: torch.promote_types and torch.result_type of all pairs, as tables.
#include "composit/op/promotion.h"

#include <gtest/gtest.h>

#include <string_view>

#include "composit/ir/error.h"

namespace composit {
namespace {

// The hexadecimal digits of the tables.
constexpr DType kDTypes[] = {DType::bool_,   DType::uint8,     DType::int8,      DType::int16,
                             DType::int32,   DType::int64,     DType::uint16,    DType::uint32,
                             DType::uint64,  DType::float16,   DType::bfloat16,  DType::float32,
                             DType::float64, DType::complex32, DType::complex64, DType::complex128};
constexpr size_t kCount = std::size(kDTypes);

DType dtype_of(char digit) { return kDTypes[digit <= '9' ? digit - '0' : digit - 'A' + 10]; }

// torch.promote_types(row, column); "-": torch refuses.
constexpr std::string_view kPromoteTypes[kCount] = {
    "012345---9ABCDEF", "113345---9ABCDEF", "232345---9ABCDEF", "333345---9ABCDEF",
    "444445---9ABCDEF", "555555---9ABCDEF", "------6--9ABC---", "-------7-9ABC---",
    "--------89ABC---", "9999999999BBCDEF", "AAAAAAAAABABCEEF", "BBBBBBBBBBBBCEEF",
    "CCCCCCCCCCCCCFFF", "DDDDDD---DEEFDEF", "EEEEEE---EEEFEEF", "FFFFFF---FFFFFFF"};

TEST(Promotion, UndefinedTensorsAreRefused) {
  EXPECT_THROW(promote(DType::count_, DType::float32), UserError);
  Promotion promotion;
  promotion.add(undefined_type());
  EXPECT_THROW(promotion.add(tensor_type(DType::float32, {})), UserError);
}

TEST(Promotion, PairsAreTorchsPromoteTypes) {
  for (size_t i = 0; i < kCount; ++i)
    for (size_t j = 0; j < kCount; ++j) {
      const DType a = kDTypes[i], b = kDTypes[j];
      const char expected = kPromoteTypes[i][j];
      const auto text = std::string(name(a)) + " and " + std::string(name(b));
      if (expected != '-') {
        EXPECT_EQ(promote(a, b), dtype_of(expected)) << text;
      } else if (category(a) == category(b)) {  // torch also refuses uint16 with bool or complex
        EXPECT_THROW(promote(a, b), UserError) << text;
      }
    }
}

// torch.result_type(torch.empty(2, dtype=row), torch.empty((), dtype=column)).
constexpr std::string_view kZeroDimensional[kCount] = {
    "012345---9ABCDEF", "1111111119ABCDEF", "2222222229ABCDEF", "3333333339ABCDEF",
    "4444444449ABCDEF", "5555555559ABCDEF", "6666666669ABCDEF", "7777777779ABCDEF",
    "8888888889ABCDEF", "9999999999999DDD", "AAAAAAAAAAAAAEEE", "BBBBBBBBBBBBBEEE",
    "CCCCCCCCCCCCCFFF", "DDDDDDDDDDDDDDDD", "EEEEEEEEEEEEEEEE", "FFFFFFFFFFFFFFFF"};

TEST(Promotion, ZeroDimensionalTensorsCountByCategory) {
  for (size_t i = 0; i < kCount; ++i)
    for (size_t j = 0; j < kCount; ++j) {
      if (kZeroDimensional[i][j] == '-') continue;
      Promotion promotion;
      promotion.add(tensor_type(kDTypes[j], {}));
      promotion.add(tensor_type(kDTypes[i], {2}));
      EXPECT_EQ(promotion.result(), dtype_of(kZeroDimensional[i][j]))
          << name(kDTypes[i]) << " " << name(kDTypes[j]);
    }
}

// torch.result_type(tensor, True | 1 | 1.5 | 1j), for a tensor of every dtype, with axes or
// without.
constexpr std::pair<DType, std::string_view> kNumbers[] = {{DType::bool_, "0123456789ABCDEF"},
                                                           {DType::int64, "5123456789ABCDEF"},
                                                           {DType::float64, "BBBBBBBBB9ABCDEF"},
                                                           {DType::complex128, "EEEEEEEEEDEEFDEF"}};

TEST(Promotion, NumbersCountByCategory) {
  for (const auto& [number, expected] : kNumbers)
    for (size_t i = 0; i < kCount; ++i)
      for (const Dims& sizes : {Dims{2}, Dims{}}) {
        Promotion promotion;
        promotion.add(tensor_type(kDTypes[i], sizes));
        promotion.add_number(number);
        EXPECT_EQ(promotion.result(), dtype_of(expected[i])) << name(kDTypes[i]) << name(number);
      }
}

// A tensor with axes, one without of every dtype, and a number: torch's elementwise_dtypes.
constexpr struct {
  DType tensor, number;
  std::string_view expected;
} kThree[] = {{DType::bool_, DType::int64, "5123456789ABCDEF"},
              {DType::bool_, DType::float64, "BBBBBBBBB9ABCDEF"},
              {DType::int32, DType::bool_, "4444444449ABCDEF"},
              {DType::int32, DType::float64, "BBBBBBBBB9ABCDEF"},
              {DType::int32, DType::complex128, "EEEEEEEEEDEEFDEF"},
              {DType::float16, DType::float64, "9999999999999DDD"},
              {DType::float16, DType::complex128, "DDDDDDDDDDDDDDDD"},
              {DType::float64, DType::complex128, "FFFFFFFFFFFFFFFF"},
              {DType::complex64, DType::float64, "EEEEEEEEEEEEEEEE"}};

TEST(Promotion, TensorsComeBeforeZeroDimensionalOnesAndTheseBeforeNumbers) {
  for (const auto& [tensor, number, expected] : kThree)
    for (size_t i = 0; i < kCount; ++i) {
      Promotion promotion;
      promotion.add_number(number);
      promotion.add(tensor_type(kDTypes[i], {}));
      promotion.add(tensor_type(tensor, {2}));
      EXPECT_EQ(promotion.result(), dtype_of(expected[i]))
          << name(tensor) << " " << name(kDTypes[i]) << " " << name(number);
    }
}

TEST(Promotion, NumbersAloneHaveTheDefaultDTypes) {
  const auto alone = [](DType number) {
    Promotion promotion;
    promotion.add_number(number);
    return promotion.result();
  };
  EXPECT_EQ(alone(DType::bool_), DType::bool_);
  EXPECT_EQ(alone(DType::int64), DType::int64);
  EXPECT_EQ(alone(DType::float64), DType::float32);
  EXPECT_EQ(alone(DType::complex128), DType::complex64);
}

TEST(Promotion, RefusesWhatHasNoDTypeToComputeWith) {
  EXPECT_THROW(Promotion().result(), UserError);
  EXPECT_THROW(promote(DType::qint8, DType::float32), UserError);
  EXPECT_THROW(category(DType::float8_e5m2), UserError);
}

TEST(Promotion, FloatsOfDTypes) {
  EXPECT_EQ(to_float(DType::bool_), DType::float32);
  EXPECT_EQ(to_float(DType::int64), DType::float32);
  EXPECT_EQ(to_float(DType::bfloat16), DType::bfloat16);
  EXPECT_EQ(to_float(DType::complex128), DType::complex128);
  EXPECT_EQ(real_dtype(DType::complex32), DType::float16);
  EXPECT_EQ(real_dtype(DType::complex128), DType::float64);
  EXPECT_EQ(real_dtype(DType::int8), DType::int8);
  EXPECT_EQ(complex_dtype(DType::float16), DType::complex32);
  EXPECT_EQ(complex_dtype(DType::bfloat16), DType::complex64);
  EXPECT_EQ(complex_dtype(DType::float64), DType::complex128);
}

}  // namespace
}  // namespace composit
