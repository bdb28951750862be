// Plans of programs: layouts, products, attention, memory.
#include <gtest/gtest.h>

#include <set>

#include "composit/ops/functions.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/lower.h"
#include "flashlight/mosaic/emit.h"
#include "tests/flashlight/mosaic/compare.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::case_of;
using test::count;
using test::divided_trips;
using test::given;
using test::weight;
using test::winograd_pixels;

const auto kNothing = [](ValueId) { return false; };

// The loops of a graph, nothing of it in another layout.
loops::Routine routine_of(const LazyTensors& outputs) {
  loops::Program program =
      loops::fuse(loops::lower(case_of("", outputs).graph, {.outline = false}));
  return std::move(program.functions.back());
}
const loops::Nest& nest(const loops::Routine& routine, size_t step) {
  return std::get<loops::Nest>(routine.steps.at(StepId(step)));
}
std::optional<Product> first_product(const LazyTensor& y) {
  const loops::Routine routine = routine_of({y});
  return product_of(routine, nest(routine, 0), kNothing);
}

// ---- layouts ------------------------------------------------------------------------------------

TEST(MosaicLayout, sizes_in_memory) {
  const Type type = tensor_type(DType::float32, {2, 64, 5, 7});
  Layout layout = row_major(type);
  EXPECT_EQ(physical_type(type, layout), type);
  EXPECT_FALSE(has_border(layout));
  layout = in_order(type, {0, 2, 3, 1});
  EXPECT_EQ(physical_type(type, layout).sizes, (Dims{2, 5, 7, 64}));
  EXPECT_FALSE(has_border(layout));
  layout.apart = 16;  // behind the channels
  EXPECT_EQ(physical_type(type, layout).sizes, (Dims{2, 5, 7, 80}));
  EXPECT_FALSE(has_border(layout));
  layout.before = {0, 0, 1, 2};
  layout.after = {0, 0, 3, 0};
  EXPECT_EQ(physical_type(type, layout).sizes, (Dims{2, 9, 9, 80}));
  EXPECT_TRUE(has_border(layout));
}

TEST(MosaicLayout, zeros_behind_the_innermost_dimension_are_a_border) {
  Layout layout = row_major(tensor_type(DType::float32, {3, 5}));
  layout.after = {0, 1};
  EXPECT_TRUE(has_border(layout));
}

TEST(MosaicLayout, a_program_in_terms_of_memory) {
  const LazyTensor x = given("x", {3, 5});
  loops::Routine routine = routine_of({cumsum(exp(x) * amax(exp(x), {0}, true), 0)});
  const ValueId value(static_cast<size_t>(std::find_if(routine.values.begin(), routine.values.end(),
                                                       [](const loops::Value& one) {
                                                         return one.role ==
                                                                    loops::Role::temporary &&
                                                                one.type.rank() == 2;
                                                       }) -
                                          routine.values.begin()));
  ASSERT_LT(value, routine.values.size());
  Layout layout = in_order(routine.values[value].type, {1, 0});
  layout.before = {0, 2};
  routine = laid_out(std::move(routine), {{value, layout}});
  EXPECT_EQ(routine.values[value].type.sizes, (Dims{7, 3}));
  size_t stores = 0;
  for (const loops::Step& step : routine.steps) {
    const Store& store = std::get<loops::Nest>(step).statement.stores[0];
    if (store.result != value) continue;
    EXPECT_EQ(print(store.at[0]), "i1 + 2");
    ++stores;
  }
  EXPECT_EQ(stores, 1);
}

TEST(MosaicLayout, numbers_of_elements) {
  const Type type = tensor_type(DType::float32, {4, 3, 5});
  const Expr i = Expr::axis(0), j = Expr::axis(1);
  const std::vector<Axis> axes = {{"", 12}, {"", 5}};
  IndexAnalysis analysis(axes);
  const Expr number = flat_index({floor_divide(i, Expr(3)), remainder(i, Expr(3)), j}, type);
  const auto at = analysis.affine(analysis.simplify(number));
  ASSERT_TRUE(at);  // the digits of i are i
  EXPECT_EQ(at->coefficients, (std::vector<int64_t>{5, 1}));
}

// ---- products -----------------------------------------------------------------------------------

TEST(MosaicProduct, matrices) {
  const auto product = first_product(matmul(given("x", {33, 65}), given("y", {65, 19})));
  ASSERT_TRUE(product);
  EXPECT_EQ(product->size(product->rows), 33);
  EXPECT_EQ(product->column_count(), 19);
  EXPECT_EQ(product->size(product->terms), 65);
  EXPECT_TRUE(product->batch.empty());
  EXPECT_EQ(product->operations(), 2 * 33 * 65 * 19);
}

// Axes that go through memory like one are one: the batch of a linear is rows.
TEST(MosaicProduct, axes_are_joined) {
  const auto linear =
      first_product(apply_one("aten::linear", {given("x", {3, 11, 65}), weight("w", {19, 65})}));
  ASSERT_TRUE(linear);
  EXPECT_EQ(linear->rows.size(), 1);
  EXPECT_EQ(linear->size(linear->rows), 33);
  const auto heads = first_product(bmm(reshape(given("x", {2, 3, 17, 20}), {6, 17, 20}),
                                       reshape(given("y", {2, 3, 20, 18}), {6, 20, 18})));
  ASSERT_TRUE(heads);
  EXPECT_EQ(heads->batch.size(), 1);
  EXPECT_EQ(heads->size(heads->batch), 6);
}

TEST(MosaicProduct, what_is_known_is_packed) {
  const LazyTensor y = matmul(weight("w", {33, 65}), given("x", {65, 19}));
  const loops::Routine routine = routine_of({y});
  const auto is_weight = [&](ValueId value) {
    return routine.values[value].role == loops::Role::weight;
  };
  const auto product = product_of(routine, nest(routine, 0), is_weight);
  ASSERT_TRUE(product);
  EXPECT_TRUE(is_weight(product->right));
  EXPECT_EQ(product->column_count(), 33);
}

TEST(MosaicProduct, other_sums_are_none) {
  EXPECT_FALSE(first_product(sum(given("x", {65, 65}) * given("y", {65, 65}), {1})));
  EXPECT_FALSE(first_product(amax(given("x", {65, 65}), {1})));
  EXPECT_FALSE(first_product(matmul(given("x", {2, 3}), given("y", {3, 2}))));  // too small
  const auto whole = [](const char* name) { return to(given(name, {65, 65}), DType::int64); };
  EXPECT_FALSE(first_product(matmul(whole("x"), whole("y"))));
}

// ---- attention ----------------------------------------------------------------------------------

struct Attended {
  LazyTensor scores, weights, result;
};
Attended attended(const LazyTensor& extra = {}, const char* queries = "q") {
  const LazyTensor q = given(queries, {3, 35, 16}), k = given("k", {3, 37, 16}),
                   v = given("v", {3, 37, 24});
  Attended one;
  one.scores = bmm(q, transpose(k, 1, 2)) * 0.25;
  if (extra.defined()) one.scores = one.scores + extra;
  one.weights = softmax(one.scores, -1);
  one.result = bmm(one.weights, v);
  return one;
}
size_t attentions(const LazyTensors& outputs) {
  return count(plan_of(case_of("", outputs).graph), kAttention);
}

TEST(MosaicAttention, is_recognised) {
  EXPECT_EQ(attentions({attended().result}), 1);
  EXPECT_EQ(attentions({attended(given("m", {35, 37})).result}), 1);
  EXPECT_EQ(attentions({attended(given("m", {3, 1, 37})).result}), 1);
  const Attended two = attended(given("m", {37}), "other");
  EXPECT_EQ(attentions({two.result, attended().result}), 2);
}

TEST(MosaicAttention, scores_that_somebody_else_reads_stay) {
  const Attended one = attended();
  EXPECT_EQ(attentions({one.result, one.scores}), 0);
  EXPECT_EQ(attentions({one.result, one.weights}), 0);
  EXPECT_EQ(attentions({one.result, sum(one.weights, {0})}), 0);
}

TEST(MosaicAttention, other_softmaxes_are_none) {
  const LazyTensor q = given("q", {3, 35, 16}), k = given("k", {3, 35, 16}),
                   v = given("v", {3, 35, 24});
  const LazyTensor scores = bmm(q, transpose(k, 1, 2));
  EXPECT_EQ(attentions({bmm(softmax(scores, 1), v)}), 0);
  EXPECT_EQ(attentions({bmm(transpose(softmax(scores, 2), 1, 2), v)}), 0);
  EXPECT_EQ(attentions({bmm(exp(scores) / sum(scores, {2}, true), v)}), 0);
  EXPECT_EQ(attentions({bmm(relu(scores), v)}), 0);
  EXPECT_EQ(attentions({bmm(softmax(q, 2), transpose(k, 1, 2))}), 0);
}

// ---- loops --------------------------------------------------------------------------------------

// By the numbers of trips that threads divide.
std::vector<int64_t> trips(const LazyTensor& y) {
  std::vector<int64_t> all;
  for (const Kernel& kernel : plan_of(case_of("", {y}).graph).run)
    if (kernel.form == &kLoops) all.push_back(divided_trips(kernel));
  return all;
}

TEST(MosaicLoops, threads_divide_rounds_that_are_apart) {
  const LazyTensor x = given("x", {40, 30});
  EXPECT_EQ(trips(tanh(x)), (std::vector<int64_t>{40}));
  EXPECT_EQ(trips(softmax(x, 1)), (std::vector<int64_t>{40}));
  EXPECT_EQ(trips(cumsum(x, 1)), (std::vector<int64_t>{40}));
  EXPECT_EQ(trips(transpose(x, 0, 1)), (std::vector<int64_t>{30}));
}

// Rows of x are added to rows that an index says: two threads might add to the same one.
TEST(MosaicLoops, rounds_that_may_meet_are_one_threads) {
  const LazyTensor x = given("x", {40, 30}), rows = given("i", {40}, 9, DType::int64);
  const std::vector<int64_t> all =
      trips(apply_one("aten::index_add", {zeros({10, 30}, DType::float32), 0, rows, x, 1}));
  EXPECT_EQ(std::count(all.begin(), all.end(), 40), 0);
}

// ---- the whole ----------------------------------------------------------------------------------

TEST(MosaicPlan, prints) {
  const LazyTensor x = given("x", {1, 8, 9, 9}), w = weight("w", {8, 8, 3, 3});
  const auto optional = ArgumentValue();
  const LazyTensor y = relu(apply_one("aten::convolution", {x, w, optional, Ints{1, 1}, Ints{1, 1},
                                                            Ints{1, 1}, false, Ints{0, 0}, 1}));
  const std::string text = print(plan_of(test::case_of("", {y}).graph));
  for (const char* part :
       {"prepare, ", "pack_8x72", "zeros around x", "for 9 (threads) { copy: for 9, for 8 }",
        "which has zeros around it", "ends here: a product follows", "convolution_relu_81x8x72",
        "9 x 9 rows x 8 columns x 3 x 3 x 8 terms", "fuses convolution, relu", "FLOP per byte",
        "a result", "at least"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

// The reason why a value is in memory, for each reason there is.
TEST(MosaicPlan, says_why_the_next_operation_is_not_fused) {
  const LazyTensor x = given("x", {20, 40}), w = weight("w", {40, 40}), v = weight("v", {40, 40});
  const auto says = [](const LazyTensor& y, const std::string& reason) {
    const std::string text = print(plan_of(test::case_of("", {y}).graph));
    EXPECT_NE(text.find(reason), std::string::npos) << reason << " in\n" << text;
  };
  says(matmul(exp(x), w), "which is a side of a product, which tiles read from memory");
  says(matmul(relu(matmul(x, w)), v), "which is needed whole by mm");
  says(softmax(matmul(x, w), 1), "which is read by 2: amax, exp");
  says(cat({matmul(x, w), x}, 0) + 1.0, "which has parts that are written one by one");
  says(slice(matmul(x, w), 0, 0, 7) * 2.0, "which is read in part, or in another order, by mul");
  const LazyTensor y = x * x * x + x * 0.5 - 7.0;
  says(matmul(y / sum(y, {1}, true), w), "ends here: a product follows");
}

// On top of the kernel: what it computes, its loops, how much that is.
TEST(MosaicPlan, kernels_open_with_what_they_do) {
  const LazyTensor x = given("x", {20, 40}), w = weight("w", {40, 33});
  const Plan plan = plan_of(test::case_of("", {relu(matmul(softmax(x, 1), w))}).graph);
  const std::string text = emit(plan, "model").text;
  for (const char* part :
       {"// amax, sub, exp, sum, div\n// for 20 (threads) { amax: 40 terms; exp: for 40;",
        "// mm, relu\n// 20 rows x 33 columns x 40 terms: strips", "FLOP per byte\nvoid "})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(MosaicPlan, what_depends_on_weights_alone_is_prepared) {
  const LazyTensor x = given("x", {9, 65}), w = weight("w", {65, 65}), v = weight("v", {65});
  const Plan plan = plan_of(case_of("", {matmul(x, tanh(w) * v)}).graph);
  EXPECT_EQ(plan.run.size(), 1);
  EXPECT_GT(plan.prepared_bytes, 0);
  const Plan anew = plan_of(case_of("", {matmul(x, tanh(w) * v)}).graph, {.freeze = false});
  EXPECT_GT(anew.run.size(), 1);
  EXPECT_EQ(anew.prepare.size(), 0);
}

TEST(MosaicPlan, large_weights_are_transformed_in_each_call) {
  const LazyTensor x = given("x", {1, 32, 9, 9}), w = weight("w", {48, 32, 3, 3});
  const LazyTensor y =
      apply_one("aten::convolution",
                {x, w, ArgumentValue(), Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, false, Ints{0, 0}, 1});
  const Graph graph = case_of("", {y}).graph;
  const int64_t transformed = 16 * 32 * 48 * 4;
  const Plan before = plan_of(graph, {.winograd_bytes = transformed}),
             in_call = plan_of(graph, {.winograd_bytes = transformed - 1});
  EXPECT_EQ(winograd_pixels(before.prepare.back()), 2);
  EXPECT_EQ(winograd_pixels(in_call.prepare.back()), 0);
  EXPECT_EQ(winograd_pixels(in_call.run.back()), 2);
  EXPECT_LT(in_call.prepared_bytes, before.prepared_bytes);
  EXPECT_NE(emit(before, "m").text.find("false, next}"), std::string::npos);
  EXPECT_NE(emit(in_call, "m").text.find("true, next}"), std::string::npos);
}

// One of its writers needs the input.
TEST(MosaicPlan, parts_of_weights_and_inputs_are_not_prepared) {
  const LazyTensor x = given("x", {9, 65}), w = weight("w", {9, 65});
  const LazyTensor both = cat({tanh(w), tanh(x)}, 0);
  const test::Case one = case_of("concat", {softmax(both, 0)});
  EXPECT_EQ(plan_of(one.graph).prepare.size(), 0);
  EXPECT_EQ(test::differences({one}), "");
}

}  // namespace
}  // namespace flashlight::mosaic
