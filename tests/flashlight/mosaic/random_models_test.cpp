// Random programs of what models are made of, and their derivatives, for each set of instructions.
//
// FLASHLIGHT_FUZZ_PROGRAMS=N makes N/500 of each kind, since a compiler runs for each. What fails
// is made again of fewer steps, and is shown as the call that makes it, its graph and its C++.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "composit/ir/error.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/plan.h"
#include "tests/flashlight/mosaic/random_model.h"

namespace flashlight::mosaic {
namespace {

using test::Case;
using test::CompareOptions;
using test::differences;
using test::RandomModel;

uint64_t programs(uint64_t shortly) {
  const char* const many = std::getenv("FLASHLIGHT_FUZZ_PROGRAMS");
  return many == nullptr ? shortly
                         : std::max<uint64_t>(shortly, std::strtoull(many, nullptr, 10) / 500);
}

int steps_of(uint64_t seed) { return 2 + static_cast<int>(seed % (RandomModel::kMostSteps - 1)); }

using Make = std::function<Case(uint64_t seed, int steps)>;

// The difference of the program with the fewest steps that differs.
std::string least(uint64_t seed, const Make& make, const CompareOptions& options) {
  for (int steps = 1; steps < steps_of(seed); ++steps) {
    const std::string found = differences({make(seed, steps)}, options);
    if (!found.empty()) return found;
  }
  return differences({make(seed, steps_of(seed))}, options);
}

// All products by Strassen's algorithm that can be, however small.
Case by_strassen(Case one) {
  const Plan plan = plan_of(one.graph);
  const std::vector<std::string> names = value_names(plan.routine);
  for (const Kernel& kernel : plan.run) {
    const ProductData* const data = product_data(kernel);
    if (data == nullptr || !can_halve(data->product)) continue;
    const ValueId result = value_of(data->product.statement.stores[0]);
    if (plan.homes[result] == Home::arena) one.choices[names[result]].strassen = true;
  }
  return one;
}

void expect_equal(uint64_t count, const Make& make, const CompareOptions& options) {
  constexpr uint64_t kTogether = 20;
  for (uint64_t begin = 0; begin < count; begin += kTogether) {
    std::vector<Case> cases;
    const uint64_t end = std::min(count, begin + kTogether);
    for (uint64_t seed = begin; seed < end; ++seed) cases.push_back(make(seed, steps_of(seed)));
    if (differences(cases, options).empty()) continue;
    for (uint64_t seed = begin; seed < end; ++seed) EXPECT_EQ(least(seed, make, options), "");
  }
}

Case model(uint64_t seed, int steps) { return RandomModel(seed).make(steps, false); }
Case gradients(uint64_t seed, int steps) { return RandomModel(seed).make(steps, true); }

TEST(MosaicRandomModels, are_what_definitions_give) { expect_equal(programs(20), model, {}); }

TEST(MosaicRandomModels, have_gradients) { expect_equal(programs(10), gradients, {.times = 16}); }

TEST(MosaicRandomModels, have_products_by_strassens_algorithm) {
  size_t halved = 0;
  const Make make = [&](uint64_t seed, int steps) {
    Case one = by_strassen(RandomModel(seed).make(steps, seed % 3 == 0));
    halved += one.choices.size();
    return one;
  };
  expect_equal(programs(30), make, {.times = 16});
  EXPECT_GT(halved, 0U);
}

TEST(MosaicRandomModels, run_by_narrower_vectors) {
  for (const std::string march : {"x86-64-v3", "x86-64"})
    if (test::runs_here(march))
      expect_equal(programs(10), model, {.flags = {"-O3", "-march=" + march}});
}

}  // namespace
}  // namespace flashlight::mosaic
