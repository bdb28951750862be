#include "composit/ir/literal.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

namespace composit {
namespace {

std::string text_of(double value) {
  std::string text;
  append_float(text, value);
  return text;
}

template <class T>
std::string element_text(DType dtype, T value) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  std::string text;
  append_element(text, dtype, bytes.data());
  return text;
}

template <class T>
std::optional<T> parsed_element(DType dtype, std::string_view text) {
  std::array<std::byte, sizeof(T)> bytes;
  if (!parse_element(text, dtype, bytes.data())) return std::nullopt;
  return std::bit_cast<T>(bytes);
}

TEST(Float, IsRecognisable) {
  EXPECT_EQ(text_of(1), "1.0");
  EXPECT_EQ(text_of(-0.0), "-0.0");
  EXPECT_EQ(text_of(1e-5), "1e-05");
  EXPECT_EQ(text_of(0.1), "0.1");
  EXPECT_EQ(text_of(1e22), "1e+22");
  EXPECT_EQ(text_of(HUGE_VAL), "inf");
  EXPECT_EQ(text_of(-HUGE_VAL), "-inf");
  EXPECT_EQ(text_of(std::bit_cast<double>(0x7ff8000000000000)), "nan");
  EXPECT_EQ(text_of(std::bit_cast<double>(0xfff8000000000000)), "-nan");
  EXPECT_EQ(text_of(std::bit_cast<double>(0x7ff8000000000001)), "0x7ff8000000000001");
}

TEST(Float, ReadsAsTheCLibraryDoes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto value = std::bit_cast<double>(random());
    const std::string text = text_of(value);
    const auto parsed = parse_float(text);
    ASSERT_TRUE(parsed) << text;
    ASSERT_EQ(std::bit_cast<uint64_t>(*parsed), std::bit_cast<uint64_t>(value)) << text;
    if (!std::isnan(value)) {
      ASSERT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
    }
  }
}

TEST(Float, RefusesWhatIsNone) {
  for (const char* text : {"", "x", "1.0x", "--1", "infinity", "nan(1)", "0x",
                           "0x12345678901234567", "1e999", "+1", " 1", "0x1p3"})
    EXPECT_EQ(parse_float(text), std::nullopt) << text;
}

TEST(Int, WholeTextThatFits) {
  EXPECT_EQ(parse_int("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  for (const char* text : {"", "9223372036854775808", "1.0", "0x1", "1 ", "- 1"})
    EXPECT_EQ(parse_int(text), std::nullopt) << text;
}

// The value of a half, from its definition.
double half_value(uint16_t word) {
  const int exponent = word >> 10 & 31, fraction = word & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return word >> 15 ? -magnitude : magnitude;
}

TEST(Element, AllHalves) {
  for (uint32_t word = 0; word < 65536; ++word) {
    const auto half = static_cast<uint16_t>(word);
    const std::string text = element_text(DType::float16, half);
    ASSERT_EQ(parsed_element<uint16_t>(DType::float16, text), half) << text;
    const bool finite = (word >> 10 & 31) != 31;
    if (finite) {
      ASSERT_EQ(std::strtof(text.c_str(), nullptr), half_value(half)) << text;
    }
  }
}

TEST(Element, AllBfloats) {
  for (uint32_t word = 0; word < 65536; ++word) {
    const auto bfloat = static_cast<uint16_t>(word);
    const std::string text = element_text(DType::bfloat16, bfloat);
    ASSERT_EQ(parsed_element<uint16_t>(DType::bfloat16, text), bfloat) << text;
    const auto value = std::bit_cast<float>(word << 16);
    if (std::isfinite(value)) {
      ASSERT_EQ(std::strtof(text.c_str(), nullptr), value) << text;
    }
  }
}

TEST(Element, RoundsToHalf) {
  EXPECT_EQ(parsed_element<uint16_t>(DType::float16, "1"), 0x3c00);
  EXPECT_EQ(parsed_element<uint16_t>(DType::float16, "1.00048828125"), 0x3c00);  // a tie: to even
  EXPECT_EQ(parsed_element<uint16_t>(DType::float16, "1.0004884"), 0x3c01);
  EXPECT_EQ(parsed_element<uint16_t>(DType::float16, "2.9802322e-08"), 0x0000);  // half the least
  EXPECT_EQ(parsed_element<uint16_t>(DType::float16, "3e-08"), 0x0001);
  EXPECT_EQ(parsed_element<uint16_t>(DType::float16, "65504"), 0x7bff);
  EXPECT_EQ(parsed_element<uint16_t>(DType::float16, "65520"), std::nullopt);
  EXPECT_EQ(parsed_element<uint16_t>(DType::bfloat16, "1.00390625"), 0x3f80);
}

TEST(Element, RandomSingles) {
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto word = static_cast<uint32_t>(random());
    const std::string text = element_text(DType::float32, word);
    ASSERT_EQ(parsed_element<uint32_t>(DType::float32, text), word) << text;
    const auto value = std::bit_cast<float>(word);
    if (!std::isnan(value)) {
      ASSERT_EQ(std::strtof(text.c_str(), nullptr), value) << text;
    }
  }
}

TEST(Element, Integers) {
  EXPECT_EQ(element_text(DType::int8, int8_t{-128}), "-128");
  EXPECT_EQ(element_text(DType::uint64, ~uint64_t{0}), "18446744073709551615");
  EXPECT_EQ(parsed_element<int8_t>(DType::int8, "-128"), int8_t{-128});
  EXPECT_EQ(parsed_element<int8_t>(DType::int8, "128"), std::nullopt);
  EXPECT_EQ(parsed_element<uint8_t>(DType::uint8, "-1"), std::nullopt);
  EXPECT_EQ(parsed_element<int32_t>(DType::int32, "1.0"), std::nullopt);
}

TEST(Element, BitsOfWhatHasNoNumbers) {
  EXPECT_EQ(element_text(DType::bool_, uint8_t{1}), "true");
  EXPECT_EQ(element_text(DType::bool_, uint8_t{2}), "0x02");
  EXPECT_EQ(element_text(DType::float8_e5m2, uint8_t{0x3c}), "0x3c");
  EXPECT_EQ(element_text(DType::qint32, int32_t{-1}), "0xffffffff");
  EXPECT_EQ(parsed_element<uint8_t>(DType::bool_, "0x02"), uint8_t{2});
  EXPECT_EQ(parsed_element<uint8_t>(DType::bool_, "1"), std::nullopt);
  EXPECT_EQ(parsed_element<uint8_t>(DType::int4, "3"), std::nullopt);
  EXPECT_EQ(parsed_element<uint8_t>(DType::int4, "0x100"), std::nullopt);
}

TEST(Quoted, ReadsBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  std::string text;
  append_quoted(text, all);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(parse_quoted(text), all);
  text.clear();
  append_quoted(text, "a\"b\\c\n\x01");
  EXPECT_EQ(text, R"("a\"b\\c\n\x01")");
}

TEST(Quoted, RefusesBadEscapes) {
  for (const char* text : {R"("\)", R"("\q")", R"("\x1")", R"("\xgg")", R"("\")", R"(")", "a"})
    EXPECT_EQ(parse_quoted(text), std::nullopt) << text;
}

TEST(Word, Characters) {
  EXPECT_TRUE(is_word("aten::add.Tensor"));
  EXPECT_TRUE(is_word("_x1"));
  for (const char* text : {"", "1x", "a b", "a-b", "%x"}) EXPECT_FALSE(is_word(text)) << text;
}

}  // namespace
}  // namespace composit
