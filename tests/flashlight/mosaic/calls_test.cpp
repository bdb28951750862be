// Calls of the runtime that threads divide: against their definitions, and results that nobody
// reads.
#include <gmock/gmock.h>

#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/flashlight/mosaic/compare.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::count;
using test::differences;
using test::given;
using testing::HasSubstr;

TEST(MosaicCalls, are_divided) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensors& results) {
    cases.push_back(case_of(text, results));
    EXPECT_EQ(count(plan_of(cases.back().graph), kCalls), 1) << text;
  };
  const LazyTensor x = given("x", {7, 33}), y = given("y", {5, 9, 4}, 1, DType::float64);
  add("sort", apply("aten::sort", {x, -1, false}));
  add("topk", apply("aten::topk", {x, 5, -1, true, true}));
  add("values of topk", {apply("aten::topk", {exp(x), 5, -1, true, true})[0]});
  add("places of sort", {apply("aten::sort", {x, -1, true})[1]});
  add("topk of a middle axis", apply("aten::topk", {y, 3, 1, false, true}));
  add("what is read again", {relu(apply("aten::topk", {x * 2.0, 4, -1, true, true})[0] + 1.0)});
  const LazyTensor a = given("a", {6, 5, 3});
  std::vector<double> diagonal(25);
  for (size_t i = 0; i < 5; ++i) diagonal[6 * i] = 3;
  const LazyTensor square =
      matmul(a, transpose(a, 1, 2)) +
      LazyTensor(held_input("e", array_of(tensor_type(DType::float32, {5, 5}), diagonal)));
  add("factors", apply("aten::linalg_lu_factor_ex", {square, true, false}));
  add("qr", apply("aten::linalg_qr", {square}));
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicCalls, of_one_line_are_for_one_thread) {
  const LazyTensor x = given("x", {33}), y = given("y", {9, 4});
  std::vector<Case> cases = {case_of("a line", apply("aten::sort", {x, -1, false})),
                             case_of("outer axis", apply("aten::sort", {y, 0, false}))};
  for (const Case& one : cases) EXPECT_EQ(count(plan_of(one.graph), kCalls), 0) << one.text;
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicCalls, say_how_they_are_divided) {
  const LazyTensor largest = apply("aten::topk", {given("x", {7, 33}), 5, -1, true, true})[0];
  const Case one = case_of("", {relu(largest)});
  EXPECT_THAT(print(plan_of(one.graph)), HasSubstr("for 7 (threads) { topk of 33 x 1 }"));
  // Somebody may choose one thread, as for loops.
  const Choices alone = parse_choices("topk_values: one thread");
  EXPECT_EQ(count(plan_of(one.graph, {.choices = alone}), kCalls), 0);
  Case chosen = one;
  chosen.choices = alone;
  EXPECT_EQ(differences({chosen}), "");
}

}  // namespace
}  // namespace flashlight::mosaic
