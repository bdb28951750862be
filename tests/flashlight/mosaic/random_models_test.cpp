// Random programs of what models are made of, and their derivatives, for each set of instructions.
//
// FLASHLIGHT_FUZZ_PROGRAMS=N makes N of each kind. What fails is made again of fewer steps, and is
// shown as the call that makes it, its graph and its C++.
#include <gtest/gtest.h>

#include <cstdlib>

#include "composit/ir/error.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/plan.h"
#include "tests/flashlight/mosaic/random_model.h"

namespace flashlight::mosaic {
namespace {

using test::Case;
using test::CompareOptions;
using test::RandomModel;
using test::differences;

uint64_t programs(uint64_t shortly) {
  const char* const many = std::getenv("FLASHLIGHT_FUZZ_PROGRAMS");
  return many == nullptr ? shortly : std::strtoull(many, nullptr, 10);
}

int steps_of(uint64_t seed) { return 2 + static_cast<int>(seed % (RandomModel::kMostSteps - 1)); }

// Of the least steps that differ.
std::string least(uint64_t seed, bool trains, const CompareOptions& options) {
  for (int steps = 1; steps < steps_of(seed); ++steps) {
    const std::string found = differences({RandomModel(seed).make(steps, trains)}, options);
    if (!found.empty()) return found;
  }
  return differences({RandomModel(seed).make(steps_of(seed), trains)}, options);
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

void expect_equal(uint64_t count, bool trains, const CompareOptions& options) {
  constexpr uint64_t kTogether = 20;
  for (uint64_t begin = 0; begin < count; begin += kTogether) {
    std::vector<Case> cases;
    const uint64_t end = std::min(count, begin + kTogether);
    for (uint64_t seed = begin; seed < end; ++seed)
      cases.push_back(RandomModel(seed).make(steps_of(seed), trains));
    if (differences(cases, options).empty()) continue;
    for (uint64_t seed = begin; seed < end; ++seed) EXPECT_EQ(least(seed, trains, options), "");
  }
}

TEST(MosaicRandomModels, are_what_definitions_give) { expect_equal(programs(20), false, {}); }

TEST(MosaicRandomModels, have_gradients) { expect_equal(programs(10), true, {.times = 16}); }

TEST(MosaicRandomModels, have_products_by_strassens_algorithm) {
  std::vector<Case> cases;
  size_t halved = 0;
  for (uint64_t seed = 0; seed < programs(30); ++seed) {
    cases.push_back(by_strassen(RandomModel(seed).make(steps_of(seed), seed % 3 == 0)));
    halved += cases.back().choices.size();
  }
  EXPECT_GT(halved, 0U);
  EXPECT_EQ(differences(cases, {.times = 16}), "");
}

TEST(MosaicRandomModels, run_by_narrower_vectors) {
  for (const std::string march : {"x86-64-v3", "x86-64"})
    if (test::runs_here(march))
      expect_equal(programs(10), false, {.flags = {"-O3", "-march=" + march}});
}

}  // namespace
}  // namespace flashlight::mosaic
