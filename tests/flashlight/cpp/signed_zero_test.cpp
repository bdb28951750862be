// Additions of 0 that nobody sees, and the bits of what is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "flashlight/cpp/backend.h"
#include "tests/flashlight/cpp/compare.h"

namespace flashlight::cpp {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kGraphs = 400;
constexpr size_t kSteps = 7;
// Every pair of these meets in two inputs, one of which has them along rows, one along columns.
const std::vector<double> kNumbers = {-0.0, 0.0, 1, -2.5, INFINITY};

LazyTensor special(const std::string& name, bool along_rows) {
  const size_t n = kNumbers.size();
  std::vector<double> numbers;
  for (size_t i = 0; i < n * n; ++i) numbers.push_back(kNumbers[along_rows ? i % n : i / n]);
  const auto size = static_cast<int64_t>(n);
  return held_input(name, array_of(tensor_type(DType::float64, {size, size}), numbers));
}

// Sums with zeros in them, sums of those, and all that keeps or loses the sign of a zero.
class Zeros {
 public:
  explicit Zeros(uint64_t seed) : random_(seed) {}

  Case make() {
    values_ = {special("x", false), special("y", true)};
    for (size_t i = 0; i < kSteps; ++i) values_.push_back(step());
    return case_of("", {values_.back()});
  }

 private:
  size_t draw(size_t count) { return static_cast<size_t>(random_() % count); }
  const LazyTensor& any() {
    return values_[values_.size() - 1 - draw(std::min<size_t>(4, values_.size()))];
  }

  LazyTensor step() {
    const LazyTensor &a = any(), &b = any();
    switch (draw(15)) {
      case 0:
      case 1:
      case 2:
        return a + 0.0;
      case 3:
        return 0.0 + a;
      case 4:
        return a + b;
      case 5:
        return a - b;
      case 6:
        return a * b;
      case 7:
        return a * a;
      case 8:
        return -a;
      case 9:
        return a / b;
      case 10:
        return where(a < b, a, b);
      case 11:
        return abs(a) - b;
      case 12:
        return sqrt(abs(a)) * b;
      case 13:
        return sum(a, {1}, true) + b;
      default:
        return where(a < 0.0, b, 0.0) + abs(a);
    }
  }

  std::mt19937_64 random_;
  LazyTensors values_;
};

bool same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

TEST(SignedZero, results_keep_their_bits) {
  std::vector<Case> cases;
  std::vector<Graph> graphs;
  std::vector<std::string> names;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    cases.push_back(Zeros(seed).make());
    graphs.push_back(cases.back().graph);
    names.push_back("seed_" + std::to_string(seed));
  }
  // Nothing is rounded once instead of twice.
  const auto compiled = compile(graphs, names, {.flags = {"-O1", "-ffp-contract=off"}});
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::vector<Array> results = compiled[i](cases[i].values),
                             expected = evaluate(cases[i].graph, cases[i].values);
    for (size_t k = 0; k < results.size(); ++k) {
      const auto ours = elements<double>(results[k]), right = elements<double>(expected[k]);
      for (size_t n = 0; n < ours.size(); ++n)
        ASSERT_TRUE(same_bits(ours[n], right[n]))
            << "seed " << i << ", result " << k << ", elem " << n << ": expected " << right[n]
            << ", received " << ours[n] << "\n"
            << compiled[i]->source();
    }
  }
}

std::string text_of(const LazyTensor& result) {
  return source_of(case_of("", {result}).graph, {.name = "zeros"}).text;
}

TEST(SignedZero, zeros_go_where_their_sign_is_lost) {
  const LazyTensor x = special("x", false), y = special("y", true);
  EXPECT_THAT(text_of(x + 0.0), HasSubstr("+ 0.0"));
  EXPECT_THAT(text_of(x * (y + 0.0)), HasSubstr("+ 0.0"));
  EXPECT_THAT(text_of(amax(x + 0.0, {1})), HasSubstr("+ 0.0"));
  EXPECT_THAT(text_of(1.0 / (abs(x) + 0.0)), Not(HasSubstr("+ 0.0")));
  EXPECT_THAT(text_of(sum(x, {1}) + 0.0), Not(HasSubstr("+ 0.0")));
  EXPECT_THAT(text_of(sum((x + 0.0) * y, {1})), Not(HasSubstr("+ 0.0")));
  EXPECT_THAT(text_of(where(x + 0.0 < y, x, y)), Not(HasSubstr("+ 0.0")));
}

// One zero is left of three.
TEST(SignedZero, one_zero_makes_a_sum_positive) {
  const LazyTensor x = special("x", false), y = special("y", true);
  const std::string text = text_of((x * y + 0.0) + (x * x * y + 0.0) + 0.0);
  const size_t first = text.find("+ 0.0");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("+ 0.0", first + 1), std::string::npos) << text;
}

// A sum of slices has zeros around each of them.
TEST(SignedZero, values_in_memory_lose_theirs) {
  const LazyTensor x = special("x", false);
  const LazyTensor part = slice(x, 1, 1, 5), shifted = exp(part + 0.0);
  const LazyTensor kept = part / (sum(shifted, {1}, true) + 0.0) + 0.0;
  const std::string text = text_of(sum(kept * kept, {1}));
  EXPECT_THAT(text, Not(HasSubstr("+ 0.0")));
}

}  // namespace
}  // namespace flashlight::cpp
