#include "composit/ad/gather.h"

#include <gtest/gtest.h>

#include <random>

#include "composit/eval/loops.h"
#include "composit/op/affine.h"
#include "tests/ad/gradient_check.h"

namespace composit::test {
namespace {

TEST(Gather, AxesThatNothingDependsOnAreCounted) {
  const Contribution same = {.axes = {{"i", 3}, {"r", 4}},
                             .at = {Expr::axis(0)},
                             .value = Expr::load(0, DType::float64, {Expr::axis(0)})};
  const auto statement = gather(same, {3});
  ASSERT_TRUE(statement);
  EXPECT_EQ(loops_of_statement(*statement), "3 | ");
  EXPECT_TRUE(statement->stores[0].value.same(Expr::load(0, DType::float64, {Expr::axis(0)}) * 4));
}

// x[2 i + j, i + j]: j, and then i, have a coefficient of 1.
TEST(Gather, IndicesAreSolvedOneAfterTheOther) {
  const Expr i = Expr::axis(0), j = Expr::axis(1);
  const auto statement = gather({.axes = {{"i", 4}, {"j", 3}},
                                 .at = {i * 2 + j, i + j},
                                 .value = Expr::load(0, DType::float64, {i, j})},
                                {9, 6});
  ASSERT_TRUE(statement);
  EXPECT_EQ(loops_of_statement(*statement), "9 6 | ");
  EXPECT_TRUE(statement->stores[0].value.same(Expr::load(0, DType::float64, {i - j, j * 2 - i})))
      << print(statement->stores[0].value);
}

TEST(Gather, ReductionsStepByWhatMustDivide) {
  const Expr i = Expr::axis(0), r = Expr::axis(1);
  const auto statement = gather({.axes = {{"i", 3}, {"r", 9}},
                                 .domain = eq(remainder(r - 3, 4), 0),
                                 .at = {i},
                                 .value = Expr::load(0, DType::float64, {i, r})},
                                {3});
  ASSERT_TRUE(statement);
  EXPECT_EQ(loops_of_statement(*statement), "3 | 2 ");
  EXPECT_TRUE(statement->body[0].same(Expr::load(0, DType::float64, {i, r * 4 + 3})));
  EXPECT_FALSE(statement->domain.defined());
}

TEST(Gather, NothingWhereThereIsNoPoint) {
  const Expr i = Expr::axis(0), value = Expr::load(0, DType::float64, {i});
  EXPECT_FALSE(gather({.axes = {{"i", 0}}, .at = {i}, .value = value}, {3}));
  EXPECT_FALSE(gather({.axes = {{"i", 3}}, .domain = i > 5, .at = {i}, .value = value}, {3}));
}

// A store after a reduction happens at every point, so that its index must be in range at each.
TEST(Gather, IndicesInRangeOnlyInTheDomainAreNotStoredAfterASum) {
  const Expr i = Expr::axis(0), r = Expr::axis(1), place = Expr::load(0, DType::int64, {i});
  const auto statement = gather({.axes = {{"i", 3}, {"r", 4}},
                                 .domain = place >= 0,
                                 .at = {place},
                                 .value = Expr::load(1, DType::float64, {i, r})},
                                {5});
  ASSERT_TRUE(statement);
  EXPECT_EQ(loops_of_statement(*statement), "3 4 | ");
  EXPECT_TRUE(statement->stores[0].add);
}

// ---- random contributions -----------------------------------------------------------------------

class RandomContribution {
 public:
  explicit RandomContribution(unsigned seed) : engine_(seed) {
    const int axes = number(1, 4), dimensions = number(1, 2);
    for (int i = 0; i < axes; ++i) {
      value_sizes.push_back(number(1, 5));
      contribution.axes.push_back({"i" + std::to_string(i), value_sizes.back()});
      place_.push_back(Expr::axis(static_cast<size_t>(i)));
    }
    std::vector<Expr> domain;
    for (int i = 0; i < dimensions; ++i) {
      const int64_t size = number(1, 9);
      sizes.push_back(size);
      contribution.at.push_back(index());
      domain.push_back(contribution.at.back() >= 0 && contribution.at.back() < size);
    }
    if (number(0, 2) == 0) domain.push_back(eq(remainder(affine(), number(2, 3)), 0));
    if (number(0, 2) == 0) domain.push_back(affine() < affine());
    contribution.domain = all_of(std::move(domain));
    contribution.value = Expr::load(0, DType::float64, place_);
    if (number(0, 1) == 0)
      contribution.value = contribution.value * Expr::load(1, DType::float64, contribution.at);
    if (number(0, 3) == 0) contribution.value = select(affine() < 2, contribution.value, 0);
  }

  Contribution contribution;
  Dims sizes;
  Ints value_sizes;

 private:
  int number(int first, int last) { return std::uniform_int_distribution(first, last)(engine_); }

  Expr affine() {
    Expr sum = number(-3, 3);
    for (const Expr& axis : place_)
      if (number(0, 2) > 0) sum = sum + axis * number(-3, 3);
    return with_dtype(sum, DType::int64);
  }
  Expr index() {
    if (number(0, 3) > 0) return affine();
    const Expr divisor = number(2, 4);
    return number(0, 1) == 0 ? floor_divide(affine(), divisor) : remainder(affine(), divisor);
  }

  std::mt19937 engine_;
  std::vector<Expr> place_;
};

// The sum for each place is what adding to each place gives.
TEST(Gather, IsTheSameAsScatter) {
  int gathered = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const RandomContribution random_one(seed);
    const Contribution& from = random_one.contribution;
    const In value = operand(0, random_one.value_sizes);
    Ints place_sizes;
    for (int64_t size : random_one.sizes) place_sizes.push_back(size);
    const In factor = operand(1, place_sizes);
    Loops scatter{{value.type(), factor.type()}, {factor.type()}, {}};
    Loops gather_loops = scatter;
    scatter.statements = {
        {.axes = from.axes, .domain = from.domain, .stores = {{0, from.at, from.value, true}}}};
    if (const auto statement = gather(from, random_one.sizes)) {
      gather_loops.statements = {*statement};
      gathered += statement->stores[0].add ? 0 : 1;
    }
    ASSERT_NO_THROW(verify(gather_loops)) << seed;
    const std::vector<Array> operands = {random(value, seed), random(factor, seed)};
    const std::vector<double> expected = numbers(evaluate(scatter, operands).at(0));
    const std::vector<double> found = numbers(evaluate(gather_loops, operands).at(0));
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 1e-12) << "seed " << seed << "\n"
                                                << print(scatter) << "\n"
                                                << print(gather_loops);
  }
  EXPECT_GT(gathered, 350);  // the others add, or have no point
}

}  // namespace
}  // namespace composit::test
