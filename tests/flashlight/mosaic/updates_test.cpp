// New values of inputs in the memory of those inputs: where nobody reads the old ones any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/agreement.h"
#include "tests/flashlight/mosaic/layers.h"
#include "tests/user_error.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::differences;
using test::given;
using test::linear;
using test::weight;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

struct Update {
  LazyTensor input, value;
};

Case updating(const std::string& text, const LazyTensors& outputs,
              const std::vector<Update>& updates) {
  LazyTensors results;
  for (const LazyTensor& output : outputs) results.push_back(output);
  std::vector<Mutation> mutations;
  for (const Update& one : updates) {
    mutations.push_back({one.input, one.value});
    results.insert(results.end(), {one.input, one.value});
  }
  Case one = case_of(text, results);
  Graph::Parts parts = {.inputs = one.graph.inputs(), .mutations = mutations};
  for (const LazyTensor& output : outputs) parts.outputs.push_back(output);
  one.graph = Graph(std::move(parts));
  return one;
}

Plan planned(const Case& one) { return plan_of(one.graph, {.update_inputs = true}); }
size_t updates(const Case& one) { return planned(one).updates.size(); }

// A step of gradient descent with momentum, of two layers and a loss.
Case training_step() {
  const LazyTensor x = given("x", {40, 24}), w = weight("w", {24, 48}, 0.1),
                   v = weight("v", {48, 16});
  const LazyTensor loss = mean(square(matmul(tanh(matmul(x, w)), v)));
  const LazyTensors gradients = grad(loss, {w, v});
  const LazyTensor m = weight("m", {24, 48}), next = m * 0.9 + gradients[0];
  return updating("training step", {loss},
                  {{m, next}, {w, w - next * 0.1}, {v, v - gradients[1] * 0.1}});
}

TEST(MosaicUpdates, a_training_step_writes_over_its_parameters) {
  const Case one = training_step();
  EXPECT_EQ(updates(one), 3);
  EXPECT_EQ(plan_of(one.graph).updates.size(), 0);
  EXPECT_EQ(differences({one}), "");
}

TEST(MosaicUpdates, of_what_is_read_no_more) {
  const LazyTensor x = given("x", {9, 33}), y = given("y", {9, 33});
  const LazyTensor z = linear(exp(x), "w", 33);
  const std::vector<Case> cases = {
      updating("not read", {exp(y)}, {{x, y * 2.0}}),
      updating("its own product", {z}, {{x, relu(z)}}),
      updating("element by element", {}, {{x, x * 2.0 + y}}),
      updating("behind a norm", {}, {{x, softmax(x, 1)}}),
  };
  for (const Case& one : cases) EXPECT_EQ(updates(one), 1) << one.text;
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicUpdates, not_of_what_is_read_later) {
  const LazyTensor x = given("x", {33, 33}), y = given("y", {33, 33});
  const LazyTensor next = linear(exp(x), "w", 33);
  const std::vector<Case> cases = {
      updating("a row later", {linear(next, "v", 20) + slice(matmul(next, x), 1, 0, 20)},
               {{x, next}}),
      updating("across", {}, {{x, x + transpose(x, 0, 1)}}),
      updating("reversed", {}, {{x, flip(x, {1})}}),
      updating("the other rows", {}, {{x, softmax(x + flip(x, {0}), 1)}}),
      updating("a product reads its rows", {}, {{x, matmul(x, y) + x}}),
  };
  for (const Case& one : cases) EXPECT_EQ(updates(one), 0) << one.text;
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicUpdates, of_two_that_become_each_other) {
  const LazyTensor x = given("x", {9, 33}), y = given("y", {9, 33});
  const Case one = updating("exchange", {}, {{x, y}, {y, x}});
  EXPECT_LE(updates(one), 1);
  EXPECT_EQ(differences({one}), "");
}

// A later kernel writes again in place, and reads nothing of the old values.
TEST(MosaicUpdates, of_what_is_written_in_parts) {
  const LazyTensor x = given("x", {40, 24}), rows = given("rows", {2, 24});
  const LazyTensor index =
      LazyTensor(constant(array_of(tensor_type(DType::int64, {2}), std::vector<double>{3.0, 7.0})));
  const LazyTensor y = apply_one("aten::index_add", {x * 2.0, 0, index, rows});
  EXPECT_EQ(
      differences({updating("rows", {}, {{x, y}}),
                   case_of("in the arena",
                           {linear(apply_one("aten::index_add",
                                             {softmax(linear(x, "w", 24), 1), 0, index, rows}),
                                   "v", 9)})}),
      "");
}

// What a program writes in part, as a cache: no other element is touched.
TEST(MosaicUpdates, of_what_is_written_in_part) {
  const LazyTensor cache = given("cache", {1, 3, 40, 8}), x = given("x", {3, 24}),
                   row = given("row", {1, 3, 1, 8});
  const auto with_row = [&](const LazyTensor& whole, const LazyTensor& part) {
    return apply_one("aten::slice_scatter", {whole, part, 2, 7, 8, 1});
  };
  const LazyTensor next = with_row(cache, reshape(linear(x, "w", 8), {1, 3, 1, 8})),
                   read = sum(square(slice(next, 2, 0, 8)), {2});
  const std::vector<Case> cases = {updating("and read", {read}, {{cache, next}}),
                                   updating("alone", {}, {{cache, with_row(cache, row)}})};
  for (const Case& one : cases) {
    EXPECT_EQ(updates(one), 1) << one.text;
    EXPECT_THAT(print(planned(one)), Not(HasSubstr("for 40"))) << one.text;
  }
  EXPECT_EQ(differences(cases), "");
}

// A call whose data is refused has written nothing: an index is checked before. One that was
// checked before may be used again.
TEST(MosaicUpdates, behind_checks_of_indices) {
  constexpr int64_t kRows = 70, kWidth = 257;
  const LazyTensor table = given("table", {9, kWidth}), x = given("x", {kRows, kWidth});
  std::vector<double> numbers;
  for (int64_t i = 0; i < kRows; ++i) numbers.push_back(static_cast<double>(i * i % 9));
  const LazyTensor index =
      LazyTensor(constant(array_of(tensor_type(DType::int64, {kRows}), numbers)));
  const LazyTensor rows = apply_one("aten::index_select", {table, 0, index});
  const auto next = [&](const LazyTensor& from) { return linear(from, "w", kWidth); };
  const LazyTensor before = next(x + rows), guarded = next(where(x > 0.0, rows, x));
  const std::vector<Case> cases = {
      updating("again", {linear(before, "v", kWidth) + rows}, {{x, before}}),
      updating("of rows of which some are taken", {linear(guarded, "v", kWidth) + rows},
               {{x, guarded}}),
  };
  for (const Case& one : cases) EXPECT_EQ(updates(one), 1) << one.text;
  EXPECT_EQ(differences(cases), "");
}

// Somebody else of the kernel reads all of the old value, or what is written is read before.
TEST(MosaicUpdates, not_of_what_is_written_in_part_and_read_whole) {
  const LazyTensor cache = given("cache", {3, 40, 8}), row = given("row", {3, 1, 8});
  const LazyTensor next = apply_one("aten::slice_scatter", {cache, row, 1, 7, 8, 1});
  const std::vector<Case> cases = {
      updating("the old value", {cache * 2.0 + next}, {{cache, next}}),
      updating("its own row", {},
               {{cache, apply_one("aten::slice_scatter",
                                  {cache, slice(cache, 1, 7, 8) * 2.0 + row, 1, 7, 8, 1})}}),
      updating("another row", {},
               {{cache, apply_one("aten::slice_scatter",
                                  {cache, slice(cache, 1, 8, 9) + row, 1, 7, 8, 1})}}),
      updating("rows across", {},
               {{cache, apply_one("aten::slice_scatter",
                                  {cache, flip(slice(cache, 1, 6, 9), {1}), 1, 6, 9, 1})}}),
  };
  EXPECT_EQ(differences(cases), "");
}

// A call that refuses its data has written nothing of the caller's, whatever comes first.
TEST(MosaicUpdates, not_before_data_is_refused) {
  for (const bool is_read_first : {true, false}) {
    const std::string pick = "%y: float32[7, 300] = aten::index_select(%x, %i, dim=0)\n",
                      sum = "%s: float32[] = aten::sum(%y)\n",
                      next = "%n: float32[5, 300] = aten::";
    const Graph graph =
        parse("graph(%x: float32[5, 300], %m: float32[5, 300], %i: int64[7]) {\n" +
              (is_read_first ? pick + sum + next + "add.Tensor(%m, %s, alpha=scalar(1))\n"
                             : next + "tanh(%m)\n" + pick + sum) +
              "mutate %m = %n\nreturn %s\n}");
    const Compiled compiled = test::compiled(graph, {}, {.update_inputs = true}, 2);
    EXPECT_TRUE(compiled->may_update(1)) << "indices are checked before";
    std::vector<float> x(1500, 0.5F), m(1500, 0.25F), elsewhere(1500);
    float total = 0;
    std::vector<int64_t> i = {0, 1, 2, 3, 4, 0, 5};
    void* const place = compiled->may_update(1) ? m.data() : elsewhere.data();
    const InputBuffer from[] = {x.data(), m.data(), i.data()};
    const Buffer to[] = {&total, place};
    const auto call = [&] { compiled->run(from, to, nullptr); };
    EXPECT_THAT(user_error(call), Optional(HasSubstr("out of range")));
    EXPECT_EQ(m, std::vector<float>(1500, 0.25F));
    i.back() = 4;
    call();
    EXPECT_EQ(total, 7 * 300 * 0.5F);
    EXPECT_NEAR(*static_cast<float*>(place), is_read_first ? total + 0.25F : std::tanh(0.25F),
                1e-3);
  }
}

// A cache that gets rows where the caller says, behind it a table that is read where the caller
// says, and a second cache.
Graph two_caches(const std::string& index) {
  return parse(
      "graph(%a: float32[5, 40], %b: float32[5, 40], %x: float32[2, 40], %i: int64[2], "
      "%k: int64[2], %table: float32[9, 40], %t: int64[2]) {\n"
      "%at: int64[2] = " +
      index +
      "\n"
      "%na: float32[5, 40] = aten::index_copy(%a, %at, %x, dim=0)\n"
      "%s: float32[] = aten::sum(%na)\n"
      "%row: float32[2, 40] = aten::index_select(%table, %t, dim=0)\n"
      "%y: float32[2, 40] = aten::add.Tensor(%row, %s, alpha=scalar(1))\n"
      "%nb: float32[5, 40] = aten::index_copy(%b, %at, %y, dim=0)\n"
      "mutate %a = %na\nmutate %b = %nb\nreturn %s\n}");
}

struct TwoCaches {
  std::vector<float> a = std::vector<float>(200, 0.25F), b = a, x = std::vector<float>(80, 2),
                     table = std::vector<float>(360, 3);
  std::vector<int64_t> i = {4, 1}, k = {0, 1}, t = {8, 0};
  float sum = 0;

  void call(const Compiled& compiled) {
    std::vector<float> next_a(200), next_b(200);
    const bool in_place[] = {compiled->may_update(1), compiled->may_update(2)};
    const InputBuffer from[] = {a.data(), b.data(),     x.data(), i.data(),
                                k.data(), table.data(), t.data()};
    const Buffer to[] = {&sum, in_place[0] ? a.data() : next_a.data(),
                         in_place[1] ? b.data() : next_b.data()};
    compiled->run(from, to, nullptr);
    if (!in_place[0]) a = next_a;
    if (!in_place[1]) b = next_b;
  }
};

// All indices are checked before the first cache is written.
TEST(MosaicUpdates, of_rows_that_the_caller_chooses) {
  const Compiled compiled = test::compiled(two_caches("aten::add.Tensor(%i, %k, alpha=scalar(0))"),
                                           {}, {.update_inputs = true}, 2);
  EXPECT_TRUE(compiled->may_update(1));
  EXPECT_TRUE(compiled->may_update(2));
  const std::vector<float> old(200, 0.25F);
  TwoCaches one;
  for (int64_t* wrong : {&one.i[0], &one.i[1], &one.t[1]}) {
    const int64_t right = *wrong;
    for (const int64_t number : {int64_t{9}, int64_t{-10}}) {
      *wrong = number;
      EXPECT_THAT(user_error([&] { one.call(compiled); }), Optional(HasSubstr("out of range")));
      EXPECT_EQ(one.a, old);
      EXPECT_EQ(one.b, old);
    }
    *wrong = right;
  }
  one.call(compiled);
  EXPECT_EQ(one.sum, 3 * 40 * 0.25F + 2 * 40 * 2);
  for (size_t row = 0; row < 5; ++row)
    for (size_t j = 0; j < 40; ++j) {
      const bool is_written = row == 4 || row == 1;
      EXPECT_EQ(one.a[row * 40 + j], is_written ? 2 : 0.25F);
      EXPECT_EQ(one.b[row * 40 + j], is_written ? one.sum + 3 : 0.25F);
    }
}

TEST(MosaicUpdates, of_rows_that_are_looked_up) {
  const Compiled compiled = test::compiled(two_caches("aten::index_select(%i, %k, dim=0)"), {},
                                           {.update_inputs = true}, 2);
  EXPECT_TRUE(compiled->may_update(1));
  EXPECT_TRUE(compiled->may_update(2));
  TwoCaches one;
  one.k = {1, 0};
  one.i = {2, 7};
  const std::vector<float> old = one.a;
  EXPECT_THAT(user_error([&] { one.call(compiled); }), Optional(HasSubstr("out of range")));
  EXPECT_EQ(one.a, old);
  EXPECT_EQ(one.b, old);
  one.i = {2, 3};
  one.call(compiled);
  EXPECT_EQ(one.a[3 * 40], 2);
  EXPECT_EQ(one.b[2 * 40], one.sum + 3);
}

}  // namespace
}  // namespace flashlight::mosaic
