// Long axes in blocks: with and without a rest, along any dimension, up to sums and extremes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ad/chain_rule.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "flashlight/cpp/backend.h"
#include "tests/flashlight/cpp/compare.h"

namespace flashlight::cpp {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::differences;
using testing::HasSubstr;
using testing::Not;

// Sums over all blocks, in another order than the definition's.
constexpr double kTimes = 64;
constexpr int64_t kGroups = 5, kFeatures = 16;
// The second one has divisors that are lengths of blocks, the first one is prime.
constexpr int64_t kPrime = 4999, kRound = 5000, kFew = 100;

LazyTensor held(const std::string& name, const Dims& sizes, double scale = 1) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(scale *
                      std::sin(1.7 * static_cast<double>(i) + static_cast<double>(name[0])));
  return held_input(name, array_of(tensor_type(DType::float64, sizes), numbers));
}

// A mixture: every group moves every point, which costs kFeatures numbers per point and group.
struct Mixture {
  LazyTensor factors = held("f", {kGroups, kFeatures, kFeatures}, 0.2);
  LazyTensor means = held("m", {kGroups, kFeatures});
  LazyTensor distances;  // [kGroups, points]

  // `columns`: a point in each.
  explicit Mixture(const LazyTensor& columns) {
    const LazyTensor moved = bmm(factors, unsqueeze(columns, 0) - unsqueeze(means, 2));
    distances = sum(moved * moved, {1});
  }
  LazyTensor log_sums() const { return log(sum(exp(distances * -0.5), {0})); }
};

std::string text_of(const Case& one) { return source_of(one.graph, {.name = "mixture"}).text; }

TEST(Tile, what_a_round_hands_on_is_as_long_as_a_block) {
  for (const int64_t points : {kPrime, kRound}) {
    const Mixture mixture(transpose(held("x", {points, kFeatures}), 0, 1));
    const Case one = case_of("mixture", {(sum(mixture.log_sums()) * 2.0 + 1.0)});
    EXPECT_EQ(differences({one}, kTimes), "");
    const cpp::Source source = source_of(one.graph, {.name = "mixture"});
    EXPECT_THAT(source.text, HasSubstr("block += kBlock")) << source.text;
    const bool has_rest = source.text.find("mixture_rest(") != std::string::npos;
    EXPECT_EQ(has_rest, points == kPrime) << source.text;
    EXPECT_LT(source.arena_bytes, points * kFeatures * 8) << source.text;
  }
}

TEST(Tile, sums_of_a_gradient_add_up) {
  for (const int64_t points : {kPrime, kRound}) {
    const LazyTensor x = held("x", {points, kFeatures});
    const Mixture mixture(transpose(x, 0, 1));
    const LazyTensor loss = sum(mixture.log_sums());
    const Case one = case_of("gradient", grad(loss, {mixture.factors, mixture.means, x}));
    EXPECT_EQ(differences({one}, kTimes), "");
    EXPECT_THAT(text_of(one), HasSubstr("block += kBlock"));
  }
}

TEST(Tile, the_axis_may_be_any_dimension) {
  const Mixture mixture(held("x", {kFeatures, kPrime}));
  const Case one = case_of("columns", {mixture.distances});
  EXPECT_EQ(differences({one}, kTimes), "");
  const std::string text = text_of(one);
  EXPECT_THAT(text, HasSubstr("fl::as<const double[16][4999]>(x[0][block])")) << text;
  EXPECT_THAT(text, HasSubstr("fl::as<double[5][4999]>(")) << text;
}

TEST(Tile, what_needs_all_blocks_comes_after_them) {
  const Mixture mixture(transpose(held("x", {kPrime, kFeatures}), 0, 1));
  const LazyTensor logs = mixture.log_sums(), most = amax(logs, {0});
  const LazyTensor ratio =
      sum(exp(mixture.distances * -0.5), {1}) / (sum(mixture.distances, {1}) + 1.0);
  const LazyTensor shares = exp(mixture.distances - unsqueeze(sum(mixture.distances, {1}), 1));
  const Case one = case_of("after", {most, (logs - most), ratio, shares});
  EXPECT_EQ(differences({one}, kTimes), "");
  EXPECT_THAT(text_of(one), HasSubstr("block += kBlock"));
}

TEST(Tile, what_a_cache_holds_stays_whole) {
  const Mixture mixture(transpose(held("x", {kFew, kFeatures}), 0, 1));
  const Case one = case_of("few", {sum(mixture.log_sums())});
  EXPECT_EQ(differences({one}, kTimes), "");
  EXPECT_THAT(text_of(one), Not(HasSubstr("kBlock")));
}

}  // namespace
}  // namespace flashlight::cpp
