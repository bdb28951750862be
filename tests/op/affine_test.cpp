#include "composit/op/affine.h"

#include <gtest/gtest.h>

#include "composit/op/stores.h"

namespace composit {
namespace {

const std::vector<Axis> kAxes = {{"i", 4}, {"j", 8}, {"k", 3}, {"one", 1}};
const Expr i = Expr::axis(0), j = Expr::axis(1), k = Expr::axis(2), one = Expr::axis(3);

IndexAnalysis analysis() { return IndexAnalysis(kAxes); }

Affine affine(std::vector<int64_t> coefficients, int64_t constant) {
  coefficients.resize(kAxes.size());
  return {std::move(coefficients), constant};
}

void expect_affine(const Expr& x, const Affine& expected) {
  const auto found = analysis().affine(x);
  ASSERT_TRUE(found) << print(x);
  EXPECT_EQ(*found, expected) << print(x);
}

TEST(Affine, SumsAndMultiples) {
  expect_affine(7, affine({}, 7));
  expect_affine(i * 8 + j, affine({8, 1}, 0));
  expect_affine(2 * (i - (j + 3)) - -k, affine({2, -2, 1}, -6));
  expect_affine(i + one * 5, affine({1}, 0));  // an axis of extent 1 is 0
}

TEST(Affine, QuotientsAndRemaindersOfDigits) {
  expect_affine(floor_divide(i * 8 + j, 8), affine({1}, 0));
  expect_affine(remainder(i * 8 + j, 8), affine({0, 1}, 0));
  expect_affine(floor_divide(i * 8 + j + 16, 8), affine({1}, 2));
  expect_affine(floor_divide(i * 8 + j - 8, 8), affine({1}, -1));
  expect_affine(floor_divide(i * 8 - j + 7, 8), affine({1}, 0));
  expect_affine(remainder(i * 8 - j - 1, 8), affine({0, -1}, 7));
}

TEST(Affine, WhatIsNot) {
  for (const Expr& x :
       {i * j, floor_divide(i + j, 2), floor_divide(i * 8 + j, 4), min(i, j), remainder(i, 3),
        floor_divide(i, j), cast(i < 2, DType::int64), Expr::load(0, DType::int64, {i}),
        cast(cast(i, DType::int32), DType::int64)})
    EXPECT_FALSE(analysis().affine(x)) << print(x);
  // A numerator that may be negative: towards zero is another number than downwards.
  EXPECT_FALSE(analysis().affine(trunc_divide(i * 8 - 8, 8)));
  expect_affine(floor_divide(i * 8 - 8, 8), affine({1}, -1));
}

// Integers wrap, so that nothing is known where they may.
TEST(Affine, NumbersThatOverflow) {
  const int64_t huge = INT64_MAX;
  for (const Expr& x : {(i + huge) + (j + huge), i * huge * 2, i - INT64_MIN, Expr(huge) - j}) {
    EXPECT_FALSE(analysis().affine(x)) << print(x);
    EXPECT_TRUE(analysis().simplify(x < k).is(Function::lt)) << print(x);
  }
  const Expr large = i * (int64_t{1} << 61);  // affine, but 3 * 2^61 is out of the known range
  EXPECT_TRUE(analysis().simplify(large + 1 > 0).is(Function::gt));
  EXPECT_FALSE(analysis().affine(floor_divide(large + j, 8)));
  EXPECT_EQ(analysis().range(large * j), Range());
}

TEST(Affine, EqualFormsBecomeOneExpression) {
  for (const Expr& x : {i * 2 - k + 1, 1 - k + i + i, 2 * (i + k) - 3 * k + 1})
    EXPECT_TRUE(analysis().simplify(x).same(i * 2 - k + 1)) << print(analysis().simplify(x));
  EXPECT_TRUE(analysis().simplify(-k + 5).same(5 - k));
  EXPECT_TRUE(analysis().simplify(i - 3 - i + k).same(k - 3));
}

TEST(Affine, Ranges) {
  const auto range = [](const Expr& x) { return analysis().range(x); };
  EXPECT_EQ(range(i * 8 + j), (Range{0, 31}));
  EXPECT_EQ(range(i - j), (Range{-7, 3}));
  EXPECT_EQ(range(min(i, k) - max(j, 5)), (Range{-7, -3}));
  EXPECT_EQ(range(floor_divide(i - j, 2)), (Range{-4, 1}));
  EXPECT_EQ(range(remainder(i - j, 5)), (Range{0, 4}));
  EXPECT_EQ(range(i * j), (Range{0, 21}));
  EXPECT_EQ(range(select(i < k, i, j + 10)), (Range{0, 17}));
  EXPECT_EQ(range(Expr::load(0, DType::int64, {i})), Range());
  EXPECT_EQ(range(Expr::load(0, DType::int64, {i}) + 1), Range());
}

// ---- predicates ---------------------------------------------------------------------------------

TEST(SimplifyDomain, ProvedPredicatesGo) {
  const Expr loaded = eq(Expr::load(0, DType::int64, {i}), 1);
  EXPECT_FALSE(simplify_domain(i >= 0 && i < 4 && i - j >= -7, kAxes).defined());
  EXPECT_TRUE(simplify_domain(i >= 0 && i < 3 && j <= 7, kAxes).same(i < 3));
  EXPECT_TRUE(is_false(simplify_domain(i + j < 0 && loaded, kAxes)));
  EXPECT_TRUE(simplify_domain(select(i < 5, loaded, false), kAxes).same(loaded));
  EXPECT_TRUE(simplify_domain(loaded && i < 3, kAxes).same(select(i < 3, loaded, false)));
  EXPECT_FALSE(simplify_domain(eq(remainder(j * 2 + 4, 2), 0), kAxes).defined());
  EXPECT_TRUE(is_false(simplify_domain(ne(j - j, 0), kAxes)));
  EXPECT_FALSE(simplify_domain(Expr(), kAxes).defined());
}

// A bare axis may be longer than the tensor it indexes: its guard goes only where it is not.
TEST(SimplifyDomain, GuardsOfABareAxisNeedItsExtent) {
  EXPECT_TRUE(simplify_domain(i >= 0 && i < 3, kAxes).same(i < 3));
  EXPECT_FALSE(simplify_domain(i >= 0 && i < 4, kAxes).defined());
}

TEST(SimplifyDomain, ClampedDataAreInRange) {
  const Expr data = Expr::load(0, DType::int64, {i});
  EXPECT_FALSE(simplify_domain(max(data, 0) >= 0 && min(data, 7) < 8, kAxes).defined());
  EXPECT_TRUE(is_false(simplify_domain(max(data, 2) < i - 2, kAxes)));
  EXPECT_TRUE(simplify_domain(max(data, 0) >= i, kAxes).same(max(data, 0) >= i));
}

TEST(SimplifyDomain, ImpliedBoundsGo) {
  EXPECT_TRUE(simplify_domain(i - k >= 0 && i - k >= 2 && i > k, kAxes).same(i - k >= 2));
  EXPECT_TRUE(simplify_domain(i < k && i < k && i <= k, kAxes).same(i < k));
}

TEST(SimplifyDomain, AssumedPredicatesAreKnown) {
  const Expr x = Expr::load(0, DType::float64, {i}), y = Expr::load(1, DType::float64, {i});
  EXPECT_TRUE(assume(select(i < k, x, y), i < k && j < 3).same(x));
  EXPECT_TRUE(assume(select(i < k, x, y), i >= k).same(y));
  EXPECT_TRUE(assume(select(x < y, x, y), !(x < y)).same(y));
  EXPECT_TRUE(assume(select(x < y, x, y), i < k).same(select(x < y, x, y)));
}

TEST(Predicates, NegationOfFloatsKeepsNaN) {
  const Expr x = Expr::load(0, DType::float64, {i});
  EXPECT_TRUE(negation(x < 1).is(Function::logical_not));
  EXPECT_TRUE(negation(eq(x, 1)).same(ne(x, 1)));
  EXPECT_TRUE(negation(i < 2).same(i >= 2));
  EXPECT_TRUE(negation(negation(x < 1)).same(x < 1));
}

// ---- stores -------------------------------------------------------------------------------------

bool is_injective(const std::vector<Expr>& at) {
  IndexAnalysis now = analysis();
  return injective(at, {0, 1, 2, 3}, now);
}

TEST(Stores, Injective) {
  EXPECT_TRUE(is_injective({i, j, k}));
  EXPECT_TRUE(is_injective({i * 24 + j * 3 + k}));
  EXPECT_TRUE(is_injective({3 - i, j * 5 + k}));
  EXPECT_TRUE(is_injective({i + j, j - k, k}));  // one axis after the other
  EXPECT_FALSE(is_injective({i, j}));
  EXPECT_FALSE(is_injective({i * 23 + j * 3 + k}));
  EXPECT_FALSE(is_injective({i, j + k}));
  EXPECT_FALSE(is_injective({i, j, floor_divide(k, 2)}));
  EXPECT_FALSE(is_injective({i, j, Expr::load(0, DType::int64, {k})}));
}

Statement store_at(const Expr& at, const Expr& domain = {}) {
  return {.axes = kAxes, .domain = domain, .stores = {{0, {at}, 0}}};
}

TEST(Stores, Disjoint) {
  const auto apart = [](const Expr& a, const Expr& b) {
    const Statement x = store_at(a), y = store_at(b);
    return disjoint(x, x.stores[0], y, y.stores[0]);
  };
  EXPECT_TRUE(apart(j, j + 8));  // cat
  EXPECT_FALSE(apart(j, j + 7));
  EXPECT_TRUE(apart(2 * i, 4 * j + 1));  // even, odd
  EXPECT_FALSE(apart(2 * i, 3 * j + 1));
  EXPECT_FALSE(apart(j, Expr::load(0, DType::int64, {i})));
}

// True if a store at `at` writes place `p`, for each p of 12.
std::string written(const Expr& at, const Expr& domain = {}) {
  const Statement statement = store_at(at, domain);
  const auto predicate = writes(statement, statement.stores[0], {Expr::axis(0)});
  if (!predicate) return "unknown";
  std::string places;
  for (int p = 0; p < 12; ++p) {
    const Expr here = replace(*predicate, [&](const Expr& part) {
      return part.kind() == ExprKind::axis ? Expr::literal(int64_t{p}, DType::int64) : Expr();
    });
    places += is_true(here) ? 'x' : is_false(here) ? '.' : '?';
  }
  return places;
}

TEST(Stores, Writes) {
  EXPECT_EQ(written(i + 2), "..xxxx......");
  EXPECT_EQ(written(7 - 2 * i), ".x.x.x.x....");
  EXPECT_EQ(written(3 * i + 1, i >= 2), ".......x..x.");
  EXPECT_EQ(written(5), ".....x......");
  EXPECT_EQ(written(i, j < 3), "unknown");  // some j may write
  EXPECT_EQ(written(4 * k + i), "unknown");
  EXPECT_EQ(written(Expr::load(0, DType::int64, {i})), "unknown");
}

}  // namespace
}  // namespace composit
