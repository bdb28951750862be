// Tile schemas that somebody chooses for values of a program: memory has them, whoever touches it
// reads blocks, and results stay those of the definitions.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/relayouts.h"
#include "tests/flashlight/mosaic/compare.h"
#include "tests/user_error.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::count;
using test::count_products;
using test::given;
using test::weight;

LazyTensor convolution(const LazyTensor& x, const std::string& name, int64_t out, int64_t side = 3,
                       int64_t stride = 1) {
  return apply_one(
      "aten::convolution",
      {x, weight(name, {out, x.type().sizes[1], side, side}, 0.1), ArgumentValue(),
       Ints{stride, stride}, Ints{side / 2, side / 2}, Ints{1, 1}, false, Ints{0, 0}, 1});
}
// Two convolutions with something in between that is needed whole.
Case convolutions(int64_t channels, int64_t images = 1, int64_t side = 3, int64_t stride = 1) {
  const LazyTensor x = given("x", {images, 9, 11, 13});
  return case_of("convolutions",
                 {convolution(relu(convolution(x, "w", channels)), "v", 20, side, stride)});
}

Plan planned(const Case& one, const std::string& choices) {
  return plan_of(one.graph, {.choices = parse_choices(choices)});
}
std::string refusal(const Case& one, const std::string& choices) {
  return user_error([&] { planned(one, choices); }).value_or("");
}
Case with_choices(Case one, const std::string& choices) {
  one.text += ", " + choices;
  one.choices = parse_choices(choices);
  return one;
}
// The sizes that a value has in memory.
Dims memory_of(const Plan& plan, const std::string& name) {
  const std::vector<std::string> names = value_names(plan.routine);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw std::runtime_error("no value " + name);
  return plan.routine.values[ValueId(static_cast<size_t>(found - names.begin()))].type.sizes;
}
// The number of nests that copy what products cannot read in blocks, or the caller gives or takes.
int64_t copies(const Plan& plan) {
  return std::count_if(
      plan.routine.steps.begin(), plan.routine.steps.end(),
      [](const loops::Step& step) { return loops::origin_of(step).operation == "copy"; });
}

// A convolution reads and writes blocks of channels as they lie.
TEST(MosaicSchemas, channels_in_blocks) {
  const Case one = convolutions(32);
  const std::string choice = "relu: layout NCHW -> N C/16 H W | 16c";
  const Plan plan = planned(one, choice);
  EXPECT_EQ(memory_of(plan, "relu"), (Dims{2, 13, 15, 16}));  // zeros around rows and columns
  EXPECT_EQ(count_products(plan), 2);
  EXPECT_EQ(copies(plan), copies(planned(one, "")));
  EXPECT_EQ(test::differences({with_choices(one, choice)}), "");
}

// The last block of channels is filled up; a convolution reads a copy without blocks.
TEST(MosaicSchemas, blocks_that_are_not_full) {
  const Case one = convolutions(20, 2);
  const std::string choice = "relu: layout NCHW -> N C/16 H W | 16c";
  const Plan plan = planned(one, choice);
  EXPECT_EQ(memory_of(plan, "relu"), (Dims{2, 2, 11, 13, 16}));
  EXPECT_EQ(count_products(plan), 2);
  EXPECT_EQ(copies(plan), copies(planned(one, "")) + 2);  // what is written, and what is read
  EXPECT_EQ(test::differences({with_choices(one, choice)}), "");
}

TEST(MosaicSchemas, of_convolutions) {
  std::vector<Case> cases;
  for (const char* schema :
       {"NCHW -> N H W C", "NCHW -> C N W H", "NCHW -> N C/8 H W | 8c", "NCHW -> C/4 H W N | 4c",
        "NCHW -> N H/2 W/4 C | 2h 4w", "NCHW -> N C/16 H/4 W/4 | 2c 2h 2w | 8c 2h 2w"})
    for (const int64_t channels : {16, 21})
      for (const int64_t side : {1, 3})
        cases.push_back(with_choices(convolutions(channels, 2, side, 3 - side / 2),
                                     "relu: layout " + std::string(schema)));
  EXPECT_EQ(test::differences(cases), "");
}

// Whose channels do not mix.
TEST(MosaicSchemas, of_depthwise_convolutions) {
  std::vector<Case> cases;
  for (const int64_t channels : {32, 40}) {
    const LazyTensor x = convolution(given("x", {2, 9, 11, 13}), "w", channels);
    const LazyTensor y = apply_one(
        "aten::convolution", {relu(x), weight("v", {channels, 1, 3, 3}), ArgumentValue(),
                              Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, false, Ints{0, 0}, channels});
    const Case one = case_of("depthwise", {convolution(tanh(y), "u", 16, 1)});
    for (const char* choice :
         {"relu: layout NCHW -> N C/16 H W | 16c", "tanh: layout NCHW -> N C/16 H W | 16c",
          "tanh: layout NCHW -> N H/4 C W | 4h", "relu: layout NCHW -> C N H W"})
      cases.push_back(with_choices(one, choice));
  }
  EXPECT_EQ(test::differences(cases), "");
}

TEST(MosaicSchemas, of_matrices) {
  std::vector<Case> cases;
  for (const char* schema : {"MK -> K M", "MK -> M/8 K/8 | 8m 8k", "MK -> K/16 M | 16k",
                             "MK -> M/16 K/16 | 4m 4k | 4m 4k"})
    for (const int64_t size : {32, 37}) {
      const LazyTensor x = given("x", {size, 33}), w = weight("w", {33, size}, 0.1),
                       v = weight("v", {size, 19}, 0.1);
      const Case one = case_of("matrices", {matmul(relu(matmul(x, w)), v)});
      const std::string choice = "relu: layout " + std::string(schema);
      EXPECT_EQ(count_products(planned(one, choice)), 2) << choice;
      cases.push_back(with_choices(one, choice));
    }
  EXPECT_EQ(test::differences(cases), "");
}

// Inputs, weights and results have the layout in a copy.
TEST(MosaicSchemas, of_what_the_caller_gives_and_takes) {
  const LazyTensor x = given("x", {5, 24, 7, 9}), w = weight("w", {24, 1, 1}), y = tanh(x * w),
                   z = softmax(y, 1);
  const Case one = case_of("caller", {z, sum(y, {2, 3})});
  std::vector<Case> cases;
  for (const char* choice :
       {"x: layout NCHW -> N C/8 H W | 8c", "w: layout CHW -> C/8 H W | 8c",
        "div: layout NCHW -> N C/10 H W | 10c", "tanh: layout NCHW -> H W C/16 N | 16c",
        "sum_2: layout NC -> C/16 N | 16c"})
    cases.push_back(with_choices(one, choice));
  EXPECT_EQ(test::differences(cases), "");
  EXPECT_EQ(copies(planned(one, "x: layout NCHW -> N C/8 H W | 8c")), 1);
}

TEST(MosaicSchemas, of_products_of_two_values) {
  const LazyTensor q = given("q", {3, 35, 16}), k = given("k", {3, 37, 16}),
                   v = given("v", {3, 37, 24});
  const Case one =
      case_of("attention", {bmm(softmax(bmm(tanh(q), transpose(tanh(k), 1, 2)), 2), tanh(v))});
  std::vector<Case> cases;
  for (const char* choice :
       {"tanh_2: keep, layout BQK -> B Q/5 K | 5q", "tanh_3: keep, layout BKD -> K/8 D B | 8k",
        "tanh: keep, layout BKD -> D/16 B K | 16d", "k: layout BKD -> K B D/3 | 3d"})
    cases.push_back(with_choices(one, choice));
  EXPECT_EQ(test::differences(cases), "");
}

// Elementwise operations hand blocks on, so that nothing is laid out again.
TEST(MosaicSchemas, are_handed_on) {
  const LazyTensor x = given("x", {4, 33, 10, 10});
  const LazyTensor a = tanh(x), b = exp(a - amax(a, {2, 3}, true)), y = b / sum(b, {1}, true);
  const Case one = case_of("chain", {y});
  const std::string choice = "tanh: layout NCHW -> N C/16 H W | 16c";
  const Plan plan = planned(one, choice);
  EXPECT_EQ(memory_of(plan, "tanh"), (Dims{4, 3, 10, 10, 16}));
  EXPECT_EQ(memory_of(plan, "exp"), (Dims{4, 3, 10, 10, 16}));
  EXPECT_EQ(copies(plan), 0);
  EXPECT_EQ(test::differences({with_choices(one, choice)}), "");
}

TEST(MosaicSchemas, of_parts) {
  const LazyTensor x = given("x", {2, 20, 6, 6}), y = given("y", {2, 13, 6, 6});
  const LazyTensor both = cat({tanh(x), exp(y)}, 1);
  const Case one =
      case_of("concat", {relu(convolution(both, "w", 24)), slice(both, 1, 3, 29), sum(both, {1})});
  std::vector<Case> cases;
  for (const char* choice :
       {"cat: layout NCHW -> N C/16 H W | 16c", "cat: layout NCHW -> N C/4 H W | 4c",
        "cat: layout NCHW -> N W/4 H C | 4w"})
    cases.push_back(with_choices(one, choice));
  EXPECT_EQ(test::differences(cases), "");
}

// Products write parts that begin within a block, and read windows with zeros around them in
// blocks.
TEST(MosaicSchemas, of_parts_of_products) {
  const LazyTensor x = given("x", {2, 16, 8, 8}), y = given("y", {2, 16, 8, 8});
  const LazyTensor both = cat({convolution(x, "w", 24), convolution(y, "v", 40)}, 1);
  const auto shifted = [&](int64_t padding) {
    return apply_one("aten::convolution",
                     {both, weight("u", {16, 64, 1, 1}, 0.1), ArgumentValue(), Ints{2, 2},
                      Ints{padding, padding}, Ints{1, 1}, false, Ints{0, 0}, 1});
  };
  std::vector<Case> cases;
  for (const char* choice :
       {"cat: layout NCHW -> N C/16 H W | 16c", "cat: layout NCHW -> N C/8 H W | 8c",
        "cat: layout NCHW -> N H/2 W/2 C | 2h 2w"})
    for (const int64_t padding : {0, 2})
      cases.push_back(with_choices(case_of("parts", {shifted(padding)}), choice));
  EXPECT_EQ(test::differences(cases), "");
}

// ---- the planner's own --------------------------------------------------------------------------

std::vector<Relayout> in_each_call(const Plan& plan) {
  std::vector<Relayout> all = relayouts_of(plan);
  std::erase_if(all, [](const Relayout& one) { return one.once; });
  return all;
}

// Images of the caller are row-major: they are read across once, and results written. Row-major
// values between convolutions would be written across and read again: 33 channels of 11x13 pixels.
TEST(MosaicRelayouts, channels_are_innermost_between_convolutions) {
  const Plan plan = planned(convolutions(33), "");
  EXPECT_EQ(memory_of(plan, "relu"), (Dims{13, 15, 33}));
  const int64_t given = 9 * 11 * 13 * 4, between = 33 * 11 * 13 * 4, taken = 20 * 11 * 13 * 4;
  EXPECT_EQ(plan.relayouts.count, 2);
  EXPECT_EQ(plan.relayouts.bytes, given + taken);
  EXPECT_EQ(plan.row_major_relayouts.count, 4);
  EXPECT_EQ(plan.row_major_relayouts.bytes, given + 2 * between + taken);
}

TEST(MosaicRelayouts, of_a_plan) {
  const LazyTensor x = given("x", {40, 30}), y = given("y", {30, 40}), w = weight("w", {30, 50});
  const auto kinds = [](const std::vector<Relayout>& all) {
    std::string text;
    for (const Relayout& one : all)
      text += fmt::format("{} {}{} ", name_of(one.kind), one.bytes, one.once ? " once" : "");
    return text;
  };
  const auto of = [&](const LazyTensor& result) {
    return kinds(relayouts_of(plan_of(case_of("", {result}).graph)));
  };
  EXPECT_EQ(of(matmul(x, w)), "pack 7680 once ");  // two panels of 32 columns
  EXPECT_EQ(of(matmul(x, y)), "pack 7680 ");
  EXPECT_EQ(of(apply_one("aten::clone", {transpose(x, 0, 1)})), "retile 4800 ");
  EXPECT_EQ(of(cat({x, exp(x)}, 0)), "copy 4800 ");
  EXPECT_EQ(of(x + transpose(y, 0, 1)), "reorder 4800 ");
  EXPECT_EQ(of(exp(x)), "");
}

// Who computes a part that nobody else reads writes it where it stands in the whole.
TEST(MosaicRelayouts, parts_are_written_in_their_place) {
  const LazyTensor x = given("x", {1, 16, 9, 9}), y = given("y", {1, 16, 9, 9});
  const Case one = case_of(
      "parts", {relu(convolution(cat({convolution(x, "w", 24), tanh(convolution(y, "v", 40))}, 1),
                                 "u", 16))});
  const Plan plan = planned(one, "");
  EXPECT_EQ(memory_of(plan, "cat"), (Dims{11, 11, 64}));
  for (const Relayout& move : in_each_call(plan))
    EXPECT_FALSE(plan.routine.values[move.from].role == loops::Role::temporary) << move.bytes;
  EXPECT_EQ(test::differences({one}), "");
}

TEST(MosaicRelayouts, are_those_that_blocks_need) {
  const Case one = convolutions(20, 2);
  const size_t before = in_each_call(planned(one, "")).size();
  EXPECT_EQ(in_each_call(planned(one, "relu: layout NCHW -> N C/16 H W | 16c")).size(), before + 2);
  EXPECT_EQ(in_each_call(planned(one, "relu: layout NCHW -> N C/4 H W | 4c")).size(), before);
}

TEST(MosaicRelayouts, are_printed) {
  const std::string text =
      print(planned(convolutions(32), "relu: layout NCHW -> N C/16 H W | 16c"));
  for (const char* part :
       {"relu [2, 13, 15, 16] as CHW -> C/16 H W | 16c, zeros before 0 1 1, after 0 1 1",
        "as NK -> N/32 K | 32n", "relayouts\n  of these layouts: ", "once: 2 pack, ",
        "in each call: 1 retile, "})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(MosaicSchemas, what_cannot_be_is_refused) {
  const Case one = convolutions(32);
  const auto says = [&](const std::string& choices, const std::string& what) {
    const std::string message = refusal(one, choices);
    EXPECT_NE(message.find(what), std::string::npos) << what << " in\n" << message;
  };
  says("relu: layout NCHW -> N C/16 H W | 16k", "[mosaic] line 1: [tile schema]");
  says("relu: layout NCHW -> N C/16 H W | 16k", "'16k': no dimension of NCHW");
  says("relu: layout NCHW -> N C/8 H W | 16c", "the loops within have 16 elements");
  says("relu: layout NCHW -> N C H W C", "two outermost loops over C");
  says("relu: layout NCHW -> N C H", "no loop over W");
  says("relu: layout CHW -> C H W",
       "[mosaic] layout of 'relu': expected 4 dimensions, those of float32[1, 32, 11, 13], "
       "received 'CHW -> C H W'");
  says("rela: layout NCHW -> N H W C", "no value is called 'rela'; there are relu, x, w");
  says("x: layout NCHW -> N H W C, keep", "'x' is no temporary");
}

}  // namespace
}  // namespace flashlight::mosaic
