// Whole programs as C++: random graphs with branches and loops, their gradients, what repeats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "composit/ad/chain_rule.h"
#include "composit/ir/parse.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/package/backend.h"
#include "tests/flashlight/cpp/compare.h"
#include "tests/passes/computable_graph.h"
#include "tests/user_error.h"

namespace flashlight::cpp {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::differences;
using testing::HasSubstr;
using testing::Optional;

constexpr uint64_t kGraphs = 120;

LazyTensor held(const std::string& name, const Dims& sizes, double scale = 1,
                InputKind kind = InputKind::user_input) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(scale *
                      std::sin(1.7 * static_cast<double>(i) + static_cast<double>(name[0])));
  return held_input(name, array_of(tensor_type(DType::float64, sizes), numbers), kind);
}
LazyTensor parameter(const std::string& name, const Dims& sizes) {
  return held(name, sizes, 1, InputKind::parameter);
}

TEST(Programs, random_graphs) {
  std::vector<Case> cases;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = composit::test::ComputableGraph(seed).make();
    cases.push_back(
        {"seed " + std::to_string(seed), graph, composit::test::random_inputs(graph, seed)});
  }
  EXPECT_EQ(differences(cases), "");
}

// What is added to an element of few bytes is one operand, whatever it is.
TEST(Programs, add_what_a_condition_chooses) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::int8}) {
    const std::string text(name(dtype));
    const Graph graph = parse(
        "graph(%z: " + text + "[4], %m: bool[3], %i: int64[3], %x: " + text +
        "[3]) {\n  %y: " + text +
        "[4] = aten::_unsafe_masked_index_put_accumulate(%z, %m, [%i], %x)\n  return %y\n}\n");
    const auto of = [](DType one, const std::vector<double>& numbers) {
      return array_of(tensor_type(one, {static_cast<int64_t>(numbers.size())}), numbers);
    };
    cases.push_back({text,
                     graph,
                     {of(dtype, {5, 6, 7, 8}), of(DType::bool_, {1, 0, 1}),
                      of(DType::int64, {2, 1, 2}), of(dtype, {3, 4, 2})}});
  }
  EXPECT_EQ(differences(cases), "");
}

// The gradient of a random graph.
Graph gradient(uint64_t seed) {
  const Graph graph = composit::test::ComputableGraph(seed).make();
  const LazyTensor loss = sum(graph.outputs()[0]);
  return Graph({.inputs = graph.inputs(), .outputs = grad(loss, graph.inputs())});
}

// For functions that can be cut in no order of their steps: each order makes other loops.
constexpr uint64_t kOutOfOrder = 612;

TEST(Programs, gradients_of_random_graphs) {
  std::vector<Case> cases;
  const auto add = [&](uint64_t seed) {
    const Graph graph = gradient(seed);
    cases.push_back(
        {"seed " + std::to_string(seed), graph, composit::test::random_inputs(graph, seed)});
  };
  for (uint64_t seed = 0; seed < kGraphs; ++seed) add(seed);
  add(kOutOfOrder);
  EXPECT_EQ(differences(cases, 16), "");  // sums of sums in another order
}

// By flags that g++ 12 takes for a reason to leave the rounding out (package::default_flags).
TEST(Programs, numbers_that_are_rounded_and_widened) {
  std::vector<Case> cases;
  for (const int64_t size : {2, 3, 4, 8}) {
    const LazyTensor x = held("x", {size});
    cases.push_back(
        case_of("of " + std::to_string(size), {to(to(x * 3, DType::float32), DType::float64)}));
  }
  EXPECT_EQ(differences(cases, 4, package::default_flags()), "");
}

TEST(Programs, a_branch_and_its_gradient) {
  std::vector<Case> cases;
  for (const double scale : {1.0, -1.0}) {
    const LazyTensor x = held("x", {3, 4}, scale);
    const LazyTensors y = cond(
        sum(x) > 0, [&](const LazyTensors&) { return LazyTensors{exp(x) * 2}; },
        [&](const LazyTensors&) { return LazyTensors{x * x}; });
    const LazyTensor loss = sum(y[0]);
    cases.push_back(case_of("branch", {y[0]}));
    cases.push_back(case_of("its gradient", grad(loss, {x})));
  }
  EXPECT_EQ(differences(cases), "");
}

TEST(Programs, loops_and_their_gradients) {
  const LazyTensor x = held("x", {5, 3}), h = held("h", {3}), w = held("w", {3, 3});
  const ScanStep scanned = scan(
      [&](const LazyTensors& carried, const LazyTensors& slots) {
        const LazyTensor next = tanh(matmul(w, carried[0]) + slots[0]);
        return ScanStep{.carried = {next}, .outputs = {next * 2}};
      },
      {h}, {x});
  const LazyTensors squares =
      map([&](const LazyTensors& row) { return LazyTensors{row[0] * h}; }, {x});
  const LazyTensor s = held("s", {});
  const LazyTensors root =
      while_loop([&](const LazyTensors& v) { return abs(v[0] * v[0] - 2.0) > 1e-12; },
                 [&](const LazyTensors& v) { return LazyTensors{(v[0] + 2.0 / v[0]) / 2.0}; },
                 {s + 1.5}, {.limit = 60});
  std::vector<Case> cases = {
      case_of("scan", {scanned.carried[0], scanned.outputs[0]}),
      case_of("its gradient", grad(sum(scanned.outputs[0] * scanned.outputs[0]), {w, h})),
      case_of("map", {squares[0]}),
      case_of("its gradient", grad(sum(exp(squares[0])), {x, h})),
      case_of("while", {root[0]}),
      case_of("its gradient", grad(root[0], {s}))};
  EXPECT_EQ(differences(cases), "");
}

// Slots of weights, whose inner dimensions of size 1 functions do without.
TEST(Programs, loops_run_over_weights) {
  std::vector<Case> cases;
  for (const Dims& sizes : {Dims{5, 1, 3}, Dims{5, 1}, Dims{1, 3}, Dims{5, 3}, Dims{5}}) {
    const LazyTensor w = parameter("w", sizes);
    const LazyTensor h = parameter("h", Dims(sizes.begin() + 1, sizes.end()));
    const LazyTensors mapped =
        map([&](const LazyTensors& row) { return LazyTensors{exp(row[0] * h)}; }, {w});
    const ScanStep scanned = scan(
        [&](const LazyTensors& carried, const LazyTensors& slots) {
          return ScanStep{.carried = {carried[0] * 0.5 + slots[0]}, .outputs = {carried[0]}};
        },
        {h}, {w});
    cases.push_back(case_of("map", {mapped[0]}));
    cases.push_back(case_of("scan", {scanned.carried[0], scanned.outputs[0]}));
  }
  EXPECT_EQ(differences(cases), "");
}

// The deciding value is a parameter, or of rank 1.
TEST(Programs, weights_decide) {
  std::vector<Case> cases;
  const auto one = [](DType dtype, const Dims& sizes, double number, InputKind kind) {
    return LazyTensor(
        held_input("one", array_of(tensor_type(dtype, sizes), std::vector{number}), kind));
  };
  const LazyTensor x = held("x", {4}), zero = parameter("zero", {});
  for (const InputKind kind : {InputKind::user_input, InputKind::buffer})
    for (const Dims& sizes : {Dims{}, Dims{1}})
      for (const double number : {0.0, 1.0}) {
        const LazyTensors y = cond(
            one(DType::bool_, sizes, number, kind),
            [&](const LazyTensors&) { return LazyTensors{exp(x)}; },
            [&](const LazyTensors&) { return LazyTensors{x * 2}; });
        const ScanStep whole = scan(
            [](const LazyTensors& sum, const LazyTensors& slot) {
              return ScanStep{{sum[0] + slot[0]}, {sum[0]}};
            },
            {zero}, {x});
        const auto body = whole.carried[0].node->attribute("body").as<Region>();
        const LazyTensors some =
            apply("composit::scan",
                  {LazyTensors{zero}, LazyTensors{x}, LazyTensors{},
                   one(DType::int64, sizes, 2 + number, kind), Attribute(body), 4, number == 1});
        cases.push_back(case_of("cond", {y[0]}));
        cases.push_back(case_of("scan", {some[0], some[1]}));
      }
  EXPECT_EQ(differences(cases), "");
}

// A limit of no trips is one.
TEST(Programs, loops_that_may_make_no_trip) {
  const auto loop = [](double start) {
    const LazyTensor s = held("s", {}) * 0 + start;
    const LazyTensors end =
        while_loop([](const LazyTensors& v) { return v[0] < 1; },
                   [](const LazyTensors& v) { return LazyTensors{v[0] + 1}; }, {s}, {.limit = 0});
    return case_of("while", {end[0]});
  };
  EXPECT_EQ(differences({loop(1)}), "");
  const Case endless = loop(0);
  const Compiled compiled = cpp::compile(endless.graph, {.name = "endless"});
  EXPECT_THAT(user_error([&] { compiled(endless.values); }),
              Optional(HasSubstr("a loop goes on after 0 trips")));
}

// The longest line, and the most lines of a function, of C++ as this project writes it.
std::pair<size_t, size_t> measures(const std::string& text) {
  size_t longest = 0, most = 0, lines = 0;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line); ++lines) {
    if (line.starts_with("void ") || line.starts_with("FLASHLIGHT_INLINE ")) lines = 0;
    if (line == "}") most = std::max(most, lines + 1);
    if (line.starts_with("struct ") || line.starts_with("extern ")) lines = 0;
    longest = std::max(longest, line.size());
  }
  return {longest, most};
}

// A macro breaks the line in which the operation is.
TEST(Programs, the_compilers_errors_name_the_operation) {
  const Graph graph = parse(R"(graph(%x: float32[300]) {
    %cumsum: float32[300] = aten::cumsum(%x, dim=0)  # scope=encoder.first source=model.cpp:12
    %tanh: float32[300] = aten::tanh(%cumsum)  # scope=decoder
    %mul: float32[300] = aten::mul.Tensor(%tanh, %cumsum)
    return %mul
  })");
  const auto compile = [&](const std::string& flag) {
    return user_error([&] { cpp::compile(graph, {.name = "broken", .flags = {flag}}); });
  };
  EXPECT_THAT(compile("-Dfirst_sum="),
              Optional(HasSubstr("emitted for aten::cumsum at model.cpp:12 (encoder.first)")));
}

TEST(Programs, functions_and_lines_are_short) {
  size_t long_lines = 0, long_functions = 0;
  const auto measure = [&](uint64_t seed) {
    const std::string text = source_of(gradient(seed), {.name = "gradient"}).text;
    const auto [longest, most] = measures(text);
    long_functions += most > 60;
    long_lines += longest > 100;
  };
  for (uint64_t seed = 0; seed < kGraphs; ++seed) measure(seed);
  measure(kOutOfOrder);
  EXPECT_EQ(long_functions, 0);
  EXPECT_LE(long_lines, kGraphs / 20);  // what no rule of format.cpp knows how to break
}

// Equal layers are one function: of ten operations, so that a piece of two saves no more.
TEST(Programs, layers_are_functions) {
  LazyTensor x = held("x", {4, 8});
  for (int layer = 0; layer < 25; ++layer) {
    const std::string name(1, static_cast<char>('a' + layer));
    const LazyTensor w = held(name, {8, 8}, 0.3);
    x = tanh(matmul(x, w) + 0.1) * 0.9 + x;
    x = exp(-(x * x)) - sum(x, {1}, true) * 0.01;
  }
  const Case one = case_of("layers", {x});
  EXPECT_EQ(differences({one}), "");
  const std::string text = source_of(one.graph, {.name = "layers"}).text;
  size_t products = 0;
  for (size_t at = 0; (at = text.find("fl::tanh", at)) != std::string::npos; ++at) ++products;
  EXPECT_EQ(products, 1) << text;
}

// A few numbers that one round of a loop gives to the next need no arena.
TEST(Programs, small_results_take_turns) {
  std::string head = "graph(%x: float64[3]", body, last = "%x";
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i), module = "layers." + n;
    head += ", %w" + n + ": float64[3] parameter \"" + module + ".weight\"";
    for (const char* op : {"mul.Tensor", "tanh", "exp", "sin"}) {
      const std::string name = "%v" + std::to_string(body.size());
      body += "  " + name + ": float64[3] = aten::" + op + "(" + last +
              (op[0] == 'm' ? ", %w" + n : "") + ")  # scope=" + module + "\n";
      last = name;
    }
  }
  Case one = {"layers", parse(head + ") {\n" + body + "  return " + last + "\n}"), {}};
  one.values = composit::test::random_inputs(one.graph, 1);
  EXPECT_EQ(differences({one}), "");
  const std::string text = source_of(one.graph, {.name = "layers"}).text;
  EXPECT_THAT(text, HasSubstr("double layers_results[2][3];")) << text;
}

// A softmax stands between both uses of a product of a million elements.
TEST(Programs, large_products_are_computed_again) {
  const LazyTensor a = held("a", {16, 64, 4}, 0.3), b = held("b", {4, 1024});
  const LazyTensor product = bmm(a, expand(unsqueeze(b, 0), {16, 4, 1024}));
  const LazyTensor squares = sum(product * product, {1});
  const LazyTensor shares = exp(squares - amax(squares, {0}, true));
  const Case one = case_of("mixture", {sum(product * unsqueeze(shares, 1), {2})});
  EXPECT_EQ(differences({one}), "");
  const cpp::Source source = source_of(one.graph, {.name = "mixture"});
  size_t products = 0;
  for (size_t at = 0; (at = source.text.find("fl::product", at)) != std::string::npos; ++at)
    ++products;
  EXPECT_EQ(products, 2) << source.text;
  EXPECT_LT(source.arena_bytes, 4 << 20) << source.text;
}

// A long body of a loop is a function; equal bodies are one.
TEST(Programs, long_loops_have_bodies) {
  const LazyTensor x = held("x", {100, 3});
  LazyTensor y = x;
  for (int i = 0; i < 40; ++i) y = cat({slice(y, 1, 1, 3), sum(y * x, {1}, true) * 0.1}, 1);
  const Case one = case_of("rows", {y});
  EXPECT_EQ(differences({one}), "");
  const std::string text = source_of(one.graph, {.name = "rows"}).text;
  EXPECT_LE(measures(text).second, 60) << text;
  EXPECT_THAT(text, HasSubstr("FLASHLIGHT_INLINE void rows_body")) << text;
  EXPECT_THAT(text, HasSubstr("rows_body(x[i], ")) << text;
}

// g++ 12 warned of lanes that so few terms do not fill.
TEST(Programs, few_terms_compile_without_a_warning) {
  std::vector<Case> cases;
  for (const int64_t terms : {5, 17, 31}) {
    const LazyTensor x = held("x", {9, terms});
    cases.push_back(
        case_of(std::to_string(terms) + " terms", {sum(x * x, {1}), amax(x, {1}), sum(x)}));
  }
  const LazyTensor third = expand(held("y", {1, 9}), {31, 9}) / 3;  // the same term 31 times
  cases.push_back(case_of("equal terms", {sum(third, {0})}));
  for (const char* level : {"-O1", "-O3"}) EXPECT_EQ(differences(cases, 4, {level}), "");
}

// As in a group norm.
TEST(Programs, sums_of_another_shape_run_along_memory) {
  const LazyTensor x = reshape(held("x", {8, 16, 16}), {4, 512});
  const LazyTensor difference = x - mean(x, {1}, true);
  const Case one = case_of("variances", {mean(difference * difference, {1})});
  EXPECT_EQ(differences({one}), "");
  const std::string text = source_of(one.graph, {.name = "variances"}).text;
  EXPECT_THAT(text, testing::ContainsRegex("fl::sum<.*fl::sum<")) << text;
}

TEST(Programs, neighbors_of_small_floats_are_their_own) {
  const auto neighbors = [](DType dtype) {
    const Type type = tensor_type(dtype, {4});
    const LazyTensor x = input("x", type), y = input("y", type);
    const Graph graph({.inputs = {x, y}, .outputs = {apply_one("aten::nextafter", {x, y})}});
    const auto program = cpp::compile(graph, {.name = "neighbors"});
    const auto array = [&](const std::vector<double>& numbers) { return array_of(type, numbers); };
    return elements<double>(program({array({1, -2, 0, 100}), array({2, 2, 1, 100})})[0]);
  };
  const std::vector<double> halves = {1 + 0x1p-10, -2 + 0x1p-10, 0x1p-24, 100},
                            brains = {1 + 0x1p-7, -2 + 0x1p-7, 0x1p-133, 100};
  EXPECT_EQ(neighbors(DType::float16), halves);
  EXPECT_EQ(neighbors(DType::bfloat16), brains);
}

}  // namespace
}  // namespace flashlight::cpp
