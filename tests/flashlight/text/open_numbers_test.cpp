// Numbers in text that can be data of a call.
#include "flashlight/text/open_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>

namespace flashlight::text {
namespace {

using composit::DType;

std::string with_constants(const std::string& text) {
  const OpenText split = open_text(text);
  return filled(split, [&](size_t place) { return constant_text(split, place); });
}

TEST(OpenNumbers, AreConstantsWhereNoneAreOpen) {
  EXPECT_EQ(open_number(-12) + " " + open_int(3) + " " + open_real(0.5, DType::float32),
            "-12 3 0.5f");
  EXPECT_EQ(constant_head("int x"), "static constexpr int x");
  EXPECT_TRUE(open_text("x[12]").numbers.empty());
}

TEST(OpenNumbers, APlaceKeepsItsNumber) {
  std::string text;
  {
    const OpenNumbers open;
    text = "x[" + open_number(12) + " * i + " + open_number(-7) + "] * " +
           open_real(-0.1, DType::float32) + " + " + open_real(0.1, DType::float64);
    EXPECT_EQ(constant_head("int x"), "const int x");
  }
  const OpenText split = open_text(text);
  EXPECT_EQ(split.numbers.size(), 4U);
  EXPECT_EQ(split.numbers[0], 12);
  EXPECT_EQ(split.numbers[1], 7);
  EXPECT_EQ(with_constants(text), "x[12 * i + -7] * -0.1f + 0.1");
  EXPECT_EQ(filled(split, [](size_t place) { return "N" + std::to_string(place); }),
            "x[N0 * i + -N1] * -N2 + N3");
}

TEST(OpenNumbers, AreEquallyWide) {
  const OpenNumbers open;
  const size_t width = open_number(0).size();
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto number = static_cast<int64_t>(random() >> (random() % 63 + 1));
    EXPECT_EQ(open_number(number).size(), width) << number;
    EXPECT_EQ(with_constants(open_number(number)), std::to_string(number));
    EXPECT_EQ(with_constants(open_number(-number)), std::to_string(-number));
  }
}

TEST(OpenNumbers, WhatHasNoPlaceStaysAConstant) {
  const OpenNumbers open;
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(open_number(least), std::to_string(least));
  EXPECT_TRUE(open_text(open_real(INFINITY, DType::float64)).numbers.empty());
  EXPECT_EQ(with_constants(open_real(-0.0, DType::float32)), "-0.0f");
}

TEST(OpenNumbers, AreOpenInAScopeOfAThread) {
  const OpenNumbers open;
  {
    const OpenNumbers closed(false);
    EXPECT_EQ(open_number(3), "3");
  }
  EXPECT_NE(open_number(3), "3");
  std::string other;
  std::thread([&] { other = open_number(3); }).join();
  EXPECT_EQ(other, "3");
}

}  // namespace
}  // namespace flashlight::text
