// Branches and loops: values, types, text, and what is refused.
#include "composit/ops/control_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "composit/eval/evaluate.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/graph.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/passes/common_subexpressions.h"
#include "composit/passes/pass.h"
#include "tests/io/temporary_folder.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<double>;

LazyTensor value(const std::string& name, const Dims& sizes, const Numbers& numbers,
                 DType dtype = DType::float64) {
  return held_input(name, array_of(tensor_type(dtype, sizes), numbers));
}
LazyTensor vector(const std::string& name, const Numbers& numbers, DType dtype = DType::float64) {
  return value(name, {static_cast<int64_t>(numbers.size())}, numbers, dtype);
}
LazyTensor scalar(const std::string& name, double number, DType dtype = DType::float64) {
  return value(name, {}, {number}, dtype);
}
// Also checks that the graph is legal, and that its text reads back.
Numbers numbers(const LazyTensor& tensor) {
  Graph::Parts parts{.outputs = {tensor}};
  const Graph all = tensor.graph();
  for (const NodePtr& node : all.nodes())
    if (is_input(*node)) parts.inputs.push_back({node, 0});
  const Graph graph(std::move(parts));
  verify(graph);
  EXPECT_EQ(parse(print(graph)), graph) << print(graph);
  return elements<double>(evaluate({tensor})[0]);
}
std::string message(const std::function<void()>& action) {
  return user_error(action).value_or("no error");
}
LazyTensors none(const LazyTensors&) { return {}; }

TEST(Cond, takes_one_branch) {
  const LazyTensor x = vector("x", {1, 2});
  for (const double limit : {2.0, 5.0}) {
    const LazyTensor limited = scalar("limit", limit);
    const LazyTensors y = cond(
        sum(x) > limited,
        [&](const LazyTensors&) {
          return LazyTensors{x * 10, limited};
        },
        [&](const LazyTensors&) {
          return LazyTensors{x + 1, limited * 2};
        });
    EXPECT_EQ(numbers(y[0]), limit < 3 ? Numbers({10, 20}) : Numbers({2, 3}));
    EXPECT_EQ(numbers(y[1]), Numbers{limit < 3 ? limit : 2 * limit});
  }
}

// A branch that is not taken refuses nothing.
TEST(Cond, does_not_compute_the_other_branch) {
  const LazyTensor x = scalar("x", 1);
  const auto endless = [&](const LazyTensors&) {
    return while_loop([](const LazyTensors& v) { return v[0] > 0; },
                      [](const LazyTensors& v) { return v; }, {x}, {.limit = 3});
  };
  const auto identity = [&](const LazyTensors&) { return LazyTensors{x}; };
  EXPECT_EQ(numbers(cond(x < 0, endless, identity)[0]), Numbers{1});
  EXPECT_THAT(message([&] { numbers(cond(x > 0, endless, identity)[0]); }),
              HasSubstr("expected at most 3 trips (`limit`)"));
}

TEST(Cond, nests_and_shares_what_it_takes_from_outside) {
  const LazyTensor x = vector("x", {3}), y = vector("y", {5});
  const auto branch = [&](const LazyTensors&) {
    return cond(
        sum(y) > 0, [&](const LazyTensors&) { return LazyTensors{x * y}; },
        [&](const LazyTensors&) { return LazyTensors{x}; });
  };
  const LazyTensor z =
      cond(sum(x) > 0, branch, [&](const LazyTensors&) { return LazyTensors{x - y}; })[0];
  EXPECT_EQ(numbers(z), Numbers{15});
  const NodePtr& node = z.node;
  EXPECT_EQ(node->operands().size(), 3);  // the predicate, x and y
  EXPECT_EQ(node->attribute("then_body").as<Region>()->inputs().size(), 2);
}

TEST(Map, works_on_slots) {
  const LazyTensor xs = value("xs", {3, 2}, {1, 2, 3, 4, 5, 6}), w = vector("w", {10, 1});
  const LazyTensors y = map(
      [&](const LazyTensors& x) {
        return LazyTensors{sum(x[0] * w), x[0]};
      },
      {xs});
  EXPECT_EQ(numbers(y[0]), (Numbers{12, 34, 56}));
  EXPECT_EQ(numbers(y[1]), (Numbers{1, 2, 3, 4, 5, 6}));
}

ScanStep running_sum(const LazyTensors& sum, const LazyTensors& x) {
  return {.carried = {sum[0] + x[0]}, .outputs = {sum[0]}};
}

TEST(Scan, carries_values_and_stacks_outputs) {
  const LazyTensor xs = vector("xs", {1, 2, 3}), zero = scalar("zero", 0);
  const ScanStep forward = scan(running_sum, {zero}, {xs});
  EXPECT_EQ(numbers(forward.carried[0]), Numbers{6});
  EXPECT_EQ(numbers(forward.outputs[0]), (Numbers{0, 1, 3}));
  const ScanStep back = scan(running_sum, {zero}, {xs}, {.reverse = true});
  EXPECT_EQ(numbers(back.carried[0]), Numbers{6});
  EXPECT_EQ(numbers(back.outputs[0]), (Numbers{5, 3, 0}));
}

TEST(Scan, of_no_slots_gives_what_it_was_given) {
  const ScanStep step = scan(running_sum, {scalar("zero", 7)}, {vector("xs", {})});
  EXPECT_EQ(numbers(step.carried[0]), Numbers{7});
  EXPECT_EQ(step.outputs[0].sizes(), std::vector<int64_t>{0});
  EXPECT_EQ(numbers(step.outputs[0]), Numbers{});
}

TEST(Scan, without_sequences_has_a_length) {
  const ScanBody twice = [](const LazyTensors& x, const LazyTensors&) {
    return ScanStep{{x[0] * 2}, {}};
  };
  EXPECT_EQ(numbers(scan(twice, {scalar("x", 3)}, {}, {.length = 5}).carried[0]), Numbers{96});
}

TEST(Scan, over_slots_of_a_transposed_tensor) {
  const LazyTensor xs = transpose(value("xs", {2, 3}, {1, 2, 3, 4, 5, 6}), 0, 1);
  EXPECT_EQ(numbers(scan(running_sum, {vector("zero", {0, 0})}, {xs}).carried[0]),
            (Numbers{6, 15}));
}

// The number of trips is a value; slots behind it are zeros.
TEST(Scan, ends_after_trips) {
  const LazyTensor xs = vector("xs", {1, 2, 3}), zero = scalar("zero", 0);
  const ScanStep whole = scan(running_sum, {zero}, {xs});
  const Region body = whole.carried[0].node->attribute("body").as<Region>();
  const auto run = [&](double trips, bool reverse) {
    const LazyTensors results = apply(
        "composit::scan", {LazyTensors{zero}, LazyTensors{xs}, LazyTensors{},
                           scalar("trips", trips, DType::int64), Attribute(body), 3, reverse});
    Numbers all = numbers(results[0]), outputs = numbers(results[1]);
    all.insert(all.end(), outputs.begin(), outputs.end());
    return all;
  };
  EXPECT_EQ(run(2, false), (Numbers{3, 0, 1, 0}));
  EXPECT_EQ(run(2, true), (Numbers{3, 2, 0, 0}));
  EXPECT_EQ(run(0, true), (Numbers{0, 0, 0, 0}));
  EXPECT_THAT(message([&] { run(4, false); }), HasSubstr("expected 0 to 3 trips, received 4"));
}

LazyTensors newton(const LazyTensor& x, std::optional<int64_t> limit = {}) {
  return while_loop([&](const LazyTensors& y) { return abs(y[0] * y[0] - x) > 1e-12; },
                    [&](const LazyTensors& y) { return LazyTensors{(y[0] + x / y[0]) / 2}; }, {x},
                    {.limit = limit});
}

TEST(WhileLoop, runs_while_its_condition_holds) {
  for (const double x : {1.0, 2.0, 9.0}) {
    EXPECT_NEAR(numbers(newton(scalar("x", x))[0])[0], std::sqrt(x), 1e-12);
    EXPECT_NEAR(numbers(newton(scalar("x", x), 50)[0])[0], std::sqrt(x), 1e-12);
  }
  EXPECT_EQ(numbers(newton(scalar("x", 1))[0])[0], 1);  // no trip at all
  EXPECT_EQ(numbers(newton(scalar("x", 1), 0)[0])[0], 1);
  EXPECT_THAT(message([] { numbers(newton(scalar("x", 9), 2)[0]); }),
              HasSubstr("[composit::while_loop] expected at most 2 trips (`limit`)"));
}

// Four trips.
LazyTensors count_to_ten(const LazyTensor& x, std::optional<int64_t> limit) {
  return while_loop([](const LazyTensors& v) { return v[0] < 10; },
                    [](const LazyTensors& v) { return LazyTensors{v[0] + 3}; }, {x},
                    {.limit = limit});
}

TEST(WhileLoop, counts_its_trips) {
  const LazyTensor end = count_to_ten(scalar("x", 0), {})[0];
  EXPECT_EQ(numbers(LazyTensor{end.node, 1}), Numbers{4});
}

TEST(WhileLoop, makes_no_trip_where_its_limit_is_zero) {
  EXPECT_EQ(numbers(count_to_ten(scalar("x", 10), 0)[0]), Numbers{10});
  EXPECT_THAT(message([&] { numbers(count_to_ten(scalar("x", 9), 0)[0]); }),
              HasSubstr("expected at most 0 trips (`limit`), received a loop that goes on"));
}

TEST(WhileLoop, makes_as_many_trips_as_its_limit) {
  EXPECT_EQ(numbers(count_to_ten(scalar("x", 0), 4)[0]), Numbers{12});
  EXPECT_THAT(message([] { numbers(count_to_ten(scalar("x", 0), 3)[0]); }),
              HasSubstr("expected at most 3 trips (`limit`), received a loop that goes on"));
}

TEST(WhileLoop, carries_tensors_of_several_types) {
  const LazyTensors end =
      while_loop([](const LazyTensors& v) { return v[0] < 4; },
                 [](const LazyTensors& v) {
                   return LazyTensors{v[0] + 1, v[1] * to(v[0] + 1, DType::float32)};
                 },
                 {scalar("i", 0, DType::int64), vector("x", {1, 2}, DType::float32)});
  EXPECT_EQ(numbers(end[1]), (Numbers{24, 48}));
}

// Equal functions are equal graphs, whenever they were traced.
TEST(ControlFlow, is_identified_by_its_structure) {
  const LazyTensor x = scalar("x", 2);
  EXPECT_EQ(newton(x)[0].hash(), newton(x)[0].hash());
  EXPECT_NE(newton(x)[0].hash(), newton(x, 4)[0].hash());
  const Graph both({.inputs = {x}, .outputs = {newton(x)[0], newton(x)[0]}});
  const Graph shared = common_subexpressions(both);
  EXPECT_EQ(shared.outputs()[0].node, shared.outputs()[1].node);
}

TEST(ControlFlow, survives_the_passes) {
  const LazyTensor xs = vector("xs", {1, 4, 9}), zero = scalar("zero", 0);
  const ScanStep sums = scan(
      [](const LazyTensors& sum, const LazyTensors& x) {
        const LazyTensor root = newton(x[0], 50)[0];
        const auto smaller = [&](const LazyTensors&) { return LazyTensors{sum[0] + root * 1}; };
        const auto larger = [&](const LazyTensors&) { return LazyTensors{sum[0] + root + 0}; };
        return ScanStep{cond(root < 2.5, smaller, larger), {}};
      },
      {zero}, {xs});
  Graph graph({.inputs = {xs, zero}, .outputs = {sums.carried[0]}});
  for (const Pass& pass : all_passes()) {
    SCOPED_TRACE(pass.name);
    const Graph after = run_passes(graph, {pass});
    const Array sum = evaluate(after, {xs.node->held(), zero.node->held()})[0];
    EXPECT_NEAR(elements<double>(sum)[0], 6, 1e-12);
  }
}

TEST(ControlFlow, a_lambda_may_use_numbers_and_constants) {
  const LazyTensor xs = vector("xs", {1, 2}), table = constant(array_of(xs.type(), Numbers{3, 4}));
  const LazyTensor y =
      map([&](const LazyTensors& x) { return LazyTensors{table * x[0] + 1}; }, {xs})[0];
  EXPECT_EQ(numbers(y), (Numbers{4, 5, 7, 9}));
  EXPECT_EQ(y.node->operands().size(), 1);
}

TEST(ControlFlow, refuses_what_does_not_fit) {
  const LazyTensor x = vector("x", {1, 2}), s = scalar("s", 1);
  const auto same = [](const LazyTensors& v) { return v; };
  EXPECT_THAT(message([&] { cond(x > 0, same, same, {x}); }),
              HasSubstr("[composit::cond] expected a predicate of one bool, received bool[2]"));
  EXPECT_THAT(message([&] { cond(s, same, same, {x}); }),
              HasSubstr("expected a predicate of one bool, received float64[]"));
  EXPECT_THAT(
      message([&] { cond(s > 0, same, none, {x}); }),
      HasSubstr("expected else_body to give what then_body does, (float64[2]), received ()"));
  EXPECT_THAT(message([&] { map(same, {s}); }), HasSubstr("[composit::map] expected sequences"));
  EXPECT_THAT(message([&] { map(same, {}); }), HasSubstr("expected sequences, received none"));
  EXPECT_THAT(message([&] {
                map(same, {x, vector("y", {1})});
              }),
              HasSubstr("expected sequences with a first axis of size 2, received float64[1]"));
  EXPECT_THAT(
      message([&] { map([](const LazyTensors&) { return LazyTensors{LazyTensor()}; }, {x}); }),
      HasSubstr("expected a tensor as result 0 of the function, received none"));
  const ScanBody widening = [](const LazyTensors&, const LazyTensors& v) {
    return ScanStep{{to(v[0], DType::float32)}, {}};
  };
  EXPECT_THAT(message([&] { scan(widening, {s}, {x}); }),
              HasSubstr("expected a body that gives carried values (float64[]), received "
                        "(float32[])"));
  EXPECT_THAT(message([&] { scan(running_sum, {s}, {}); }), HasSubstr("sequences or a length"));
  EXPECT_THAT(
      message([&] { while_loop([](const LazyTensors& v) { return v[0] > 0; }, same, {x}); }),
      HasSubstr("expected a condition of one bool, received bool[2]"));
  EXPECT_THAT(message([&] {
                while_loop([](const LazyTensors& v) { return v[0] > 0; }, same, {s}, {.limit = -1});
              }),
              HasSubstr("expected a limit of at least 0, received -1"));
}

// Large constants in regions lie beside the weights.
TEST(ControlFlow, is_saved_and_loaded) {
  const test::TemporaryFolder folder;
  const LazyTensor xs = input("xs", tensor_type(DType::float64, {2, 100}));
  const LazyTensor table =
      constant(array_of(tensor_type(DType::float64, {100}), Numbers(100, 0.5)));
  const auto body = [&](const LazyTensors& sum, const LazyTensors& x) {
    return ScanStep{{sum[0] + x[0] * table}, {}};
  };
  const LazyTensor y = scan(body, {table}, {xs}).carried[0];
  const SavedCapture capture{.graph = Graph({.inputs = {xs}, .outputs = {y}})};
  save(capture, folder / "loop");
  const Graph loaded = load(folder / "loop").graph;
  EXPECT_EQ(loaded, capture.graph);
  const Array ones = array_of(xs.type(), Numbers(200, 1));
  EXPECT_EQ(elements<double>(evaluate(loaded, {ones})[0]), Numbers(100, 1.5));
}

TEST(ControlFlow, of_operations_without_a_definition_is_refused_at_once) {
  const LazyTensor x = scalar("x", 1);
  const auto secret = [](const LazyTensors& v) {
    return LazyTensors{NodeSpec("mine::secret").tensor(v[0]).output(v[0].type()).make()};
  };
  const auto same = [](const LazyTensors& v) { return v; };
  const LazyTensor y = cond(x > 0, same, secret, {x})[0];  // the other branch is taken
  EXPECT_EQ(message([&] { numbers(y); }),
            "[evaluate] composit has no definition of 'mine::secret'");
}

// Text is not inferred when it is read: what does not fit is found when it runs.
TEST(ControlFlow, of_any_text_is_checked_when_it_runs) {
  const auto run = [](const std::string& node) {
    const Graph graph =
        parse("graph(%x: float64[2]) {\n  %y: float64[2] = " + node + "\n  return %y\n}\n");
    return message([&] { evaluate(graph, {array_of(graph.inputs()[0].type(), Numbers{1, 2})}); });
  };
  const std::string body = "body=region(%0: float64[2]) {\n    return %0\n  }";
  EXPECT_THAT(run("composit::scan([%x], [], [], none, " + body + ", length=3)"), "no error");
  EXPECT_THAT(run("composit::scan([%x], [%x], [], none, " + body + ", length=3)"),
              HasSubstr("expected sequences with a first axis of size 3"));
  EXPECT_THAT(run("composit::scan([%x, %x], [], [], none, " + body + ", length=3)"),
              HasSubstr("expected body of operands (float64[2], float64[2]), received"));
  EXPECT_THAT(run("composit::scan([%x], [], [], none, length=3)"), HasSubstr("missing"));
  EXPECT_THAT(run("composit::scan([%x], [], [], none, body=1, length=3)"), HasSubstr("region"));
  EXPECT_THAT(run("composit::map([%x], [], " + body + ", length=2)"), HasSubstr("operands"));
  const std::string lies =
      "body=region(%0: float64[]) {\n    %y: float64[] = aten::expand(%0, size=[100])\n"
      "    return %y\n  }";
  EXPECT_THAT(run("composit::map([%x], [], " + lies + ", length=2)"),
              HasSubstr("expected slots of float64[2], received float64[100]"));
}

}  // namespace
}  // namespace composit
