// Derivatives through branches and loops, against closed forms and central differences.
#include "composit/ops/control_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/ad/chain_rule.h"
#include "composit/ad/functional.h"
#include "composit/ir/graph.h"
#include "composit/ops/elementwise.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/vmap.h"
#include "tests/ad/loss_check.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using testing::HasSubstr;
TEST(GradientOfCond, is_that_of_the_branch) {
  for (const double threshold : {-100.0, 100.0})
    check(
        [&](const LazyTensors& x) {
          return cond(
              sum(x[0]) > threshold,
              [&](const LazyTensors&) {
                return LazyTensors{x[0] * x[0] * x[1], x[1]};
              },
              [&](const LazyTensors&) {
                return LazyTensors{exp(x[0]), x[1] * x[1]};
              });
        },
        {{3}, {3}});
}

// Only one branch uses x, the other one y.
TEST(GradientOfCond, is_zero_for_what_the_branch_does_not_use) {
  const LazyTensor x = scalar("x", 3), y = scalar("y", 4), flag = scalar("flag", 1);
  const LazyTensor z = cond(
      flag > 0, [&](const LazyTensors&) { return LazyTensors{x * x}; },
      [&](const LazyTensors&) { return LazyTensors{y * y}; })[0];
  const auto gradients = grad(z, {x, y});
  EXPECT_EQ(numbers(gradients[0]), Numbers{6});
  EXPECT_EQ(numbers(gradients[1]), Numbers{0});
}

// 1 / 0 and its infinite gradient in the branch that is not taken do no harm.
TEST(GradientOfCond, does_not_compute_the_other_branch) {
  const LazyTensor x = scalar("x", 0);
  const LazyTensor safe = cond(
      eq(x, 0), [&](const LazyTensors&) { return LazyTensors{x * 2}; },
      [&](const LazyTensors&) { return LazyTensors{1 / x}; })[0];
  EXPECT_EQ(numbers(grad(safe, {x})[0]), Numbers{2});
}

TEST(GradientOfMap, by_sequences_and_by_what_comes_from_outside) {
  check(
      [](const LazyTensors& x) {
        return map(
            [&](const LazyTensors& slot) {
              return LazyTensors{sin(slot[0] * x[1]), slot[0]};
            },
            {x[0]});
      },
      {{3, 2}, {2}});
  check(
      [](const LazyTensors& x) {
        return map([](const LazyTensors& s) { return LazyTensors{s[0] * s[1]}; }, x);
      },
      {{3}, {3, 2}});
}

TEST(GradientOfMap, of_no_slots) {
  const LazyTensor xs = held("xs", {0, 2}, {}), w = scalar("w", 3);
  const LazyTensor y = map([&](const LazyTensors& x) { return LazyTensors{x[0] * w}; }, {xs})[0];
  const auto gradients = grad(sum(y), {xs, w});
  EXPECT_EQ(gradients[0].sizes(), (Dims{0, 2}));
  EXPECT_EQ(numbers(gradients[0]), Numbers{});
  EXPECT_EQ(numbers(gradients[1]), Numbers{0});
}

// The derivative of a map that reads nothing from outside is a map, which has no order.
TEST(GradientOfMap, is_a_map_where_nothing_is_summed) {
  const LazyTensor xs = held("xs", {2}, {1, 2});
  const LazyTensor y = map([](const LazyTensors& x) { return LazyTensors{x[0] * x[0]}; }, {xs})[0];
  const auto gradient = grad(sum(y), {xs});
  EXPECT_EQ(count({gradient[0]}, "composit::map"), 1);
  EXPECT_EQ(count({gradient[0]}, "composit::scan"), 0);
  EXPECT_EQ(numbers(gradient[0]), (Numbers{2, 4}));
}

TensorFunction recurrence(bool reverse) {
  return [reverse](const LazyTensors& x) {
    const ScanStep step = scan(
        [&](const LazyTensors& h, const LazyTensors& in) {
          const LazyTensor next = tanh(h[0] * x[2] + in[0]);
          return ScanStep{{next, h[1] + 1}, {next * in[0], h[0]}};
        },
        {x[0], x[3]}, {x[1]}, {.reverse = reverse});
    return LazyTensors{step.carried[0], step.outputs[0], step.outputs[1]};
  };
}
TEST(GradientOfScan, goes_through_the_carried_values) {
  for (const bool reverse : {false, true}) check(recurrence(reverse), {{2}, {4, 2}, {2}, {}});
}

TEST(GradientOfScan, of_no_slots) {
  const LazyTensor x = scalar("x", 3), w = scalar("w", 2), xs = held("xs", {0}, {});
  const ScanStep step = scan(
      [&](const LazyTensors& h, const LazyTensors& in) {
        return ScanStep{{h[0] * w + in[0]}, {}};
      },
      {x}, {xs});
  const auto gradients = grad(step.carried[0], {x, w, xs});
  EXPECT_EQ(numbers(gradients[0]), Numbers{1});
  EXPECT_EQ(numbers(gradients[1]), Numbers{0});
  EXPECT_EQ(numbers(gradients[2]), Numbers{});
}

// Whole numbers take part, but carry no gradient.
TEST(GradientOfScan, beside_whole_numbers) {
  check(
      [](const LazyTensors& x) {
        const ScanStep step = scan(
            [&](const LazyTensors& h, const LazyTensors& in) {
              const LazyTensor factor = to(h[1] + in[0], DType::float64);
              return ScanStep{{sin(h[0] * in[1]) * factor, h[1] + 2}, {in[0], h[0] * factor}};
            },
            {x[0], full({}, 1, DType::int64)}, {arange(3), x[1]});
        return LazyTensors{step.carried[0], step.outputs[1]};
      },
      {{}, {3}});
}

// h[i] = w h[i] + i: the derivative by h needs none of the carried values, that by w needs all.
TEST(GradientOfScan, keeps_only_what_it_needs) {
  const LazyTensor x = scalar("x", 3), w = scalar("w", 2), steps = held("steps", {3}, {1, 2, 3});
  const LazyTensor end = scan(
                             [&](const LazyTensors& h, const LazyTensors& step) {
                               return ScanStep{{h[0] * w + step[0]}, {}};
                             },
                             {x}, {steps})
                             .carried[0];
  const auto by_x = grad(end, {x}), by_w = grad(end, {w});
  EXPECT_EQ(numbers(by_x[0]), Numbers{8});
  EXPECT_EQ(count({by_x[0]}, "composit::scan"), 1);
  // h = 3, 7, 16: dw = 16 + 2 (7 + 2 * 3)
  EXPECT_EQ(numbers(by_w[0]), Numbers{42});
  EXPECT_EQ(count({by_w[0]}, "composit::scan"), 2);
}

// tanh(exp(w) h + x): the trip back loads what tanh gave and does not compute it again. exp(w) is
// the same in all trips, and is not kept for each of them.
TEST(GradientOfScan, keeps_what_is_dear_to_compute) {
  const LazyTensor x = scalar("x", 0.5), w = scalar("w", -1), xs = held("xs", {3}, {0.1, 0.2, 0.3});
  const LazyTensor end = scan(
                             [&](const LazyTensors& h, const LazyTensors& in) {
                               return ScanStep{{tanh(h[0] * exp(w) + in[0])}, {}};
                             },
                             {x}, {xs})
                             .carried[0];
  const LazyTensor gradient = grad(end, {w})[0];
  const Node& back = *gradient.node;
  ASSERT_EQ(back.op().str(), "composit::scan");
  const Graph trip = *back.attribute("body").as<Region>();
  EXPECT_EQ(count(trip, "aten::tanh"), 0);
  EXPECT_EQ(count(trip, "aten::exp"), 1);
  EXPECT_EQ(back.arguments()[1].size, 2);  // slots: h, and tanh of it all
}

// Cotangents flow from one carried value to the other, two trips later to a third.
TEST(GradientOfScan, of_values_that_depend_on_each_other) {
  check(
      [](const LazyTensors& x) {
        const ScanStep step = scan(
            [](const LazyTensors& h, const LazyTensors&) {
              return ScanStep{{h[1] * h[1], h[2] * 2, sin(h[0])}, {}};
            },
            {x[0], x[1], x[2]}, {}, {.length = 4});
        return LazyTensors{step.carried[0]};
      },
      {{2}, {2}, {2}});
}

// Newton's method for sqrt(x): 1 / (2 sqrt(x)), and so on.
LazyTensor root_of(const LazyTensor& x, std::optional<int64_t> limit) {
  return while_loop([&](const LazyTensors& y) { return abs(y[0] * y[0] - x) > 1e-12; },
                    [&](const LazyTensors& y) { return LazyTensors{(y[0] + x / y[0]) / 2}; },
                    {ones_like(x)}, {.limit = limit})[0];
}
TEST(GradientOfWhile, of_newtons_method) {
  for (const double at : {1.0, 2.0, 9.0}) {
    const LazyTensor x = scalar("x", at);
    const LossFunction root = [](const LazyTensors& in) { return root_of(in[0], 40); };
    const LossFunction slope = [&](const LazyTensors& in) { return grad(root)(in)[0]; };
    if (at == 1.0) {  // no trip: the start does not depend on x
      EXPECT_EQ(numbers(grad(root)({x})[0]), Numbers{0});
      continue;
    }
    EXPECT_NEAR(numbers(grad(root)({x})[0])[0], 0.5 / std::sqrt(at), 1e-9);
    EXPECT_NEAR(numbers(grad(slope)({x})[0])[0], -0.25 * std::pow(at, -1.5), 1e-6);
  }
}

TEST(GradientOfWhile, by_everything_it_uses) {
  check(
      [](const LazyTensors& x) {
        return while_loop(
            [&](const LazyTensors& v) { return v[0] < 4; },
            [&](const LazyTensors& v) {
              return LazyTensors{v[0] + 1, v[1] * x[1] + sin(v[2]), v[2] * v[0], v[3]};
            },
            {scalar("start", 1), x[0], x[2], x[3]}, {.limit = 5});
      },
      {{2}, {2}, {2}, {2}});
}

TEST(GradientOfWhile, needs_a_limit) {
  const LazyTensor x = scalar("x", 2);
  EXPECT_THAT(user_error([&] { grad(root_of(x, {}), {x}); }).value_or(""),
              HasSubstr("[composit::while_loop] expected a `limit`, the most trips"));
}

// A loop in a branch in a loop, and a function of the user's with a derivative inside.
TEST(GradientOfControlFlow, nests) {
  check(
      [](const LazyTensors& x) {
        const auto body = [&](const LazyTensors& h, const LazyTensors& in) {
          const auto loop = [&](const LazyTensors&) {
            return while_loop([&](const LazyTensors& v) { return v[1] < in[0]; },
                              [&](const LazyTensors& v) {
                                return LazyTensors{v[0] * x[2], v[1] + 0.25};
                              },
                              {h[0], zeros_like(in[0])}, {.limit = 8});
          };
          const auto plain = [&](const LazyTensors&) { return LazyTensors{cos(h[0]), h[0]}; };
          const LazyTensors next = cond(in[0] > 0.6, loop, plain);
          const auto square = [&](const LazyTensors& y) { return sum(y[0] * y[0] * next[1]); };
          return ScanStep{{next[0]}, {grad(square)({next[0]})[0]}};
        };
        const ScanStep step = scan(body, {x[0]}, {x[1]});
        return LazyTensors{step.carried[0], step.outputs[0]};
      },
      {{}, {3}, {}});
}

// A recurrent network, as a loop and unrolled.
TEST(GradientOfControlFlow, of_a_recurrent_network) {
  const std::vector<Dims> sizes = {{5, 2, 3}, {2, 4}, {3, 4}, {4, 4}, {4}};  // xs, h, w, u, b
  LazyTensors inputs;
  for (const Dims& one : sizes) {
    const Type type = tensor_type(DType::float64, one);
    const int seed = static_cast<int>(inputs.size());
    inputs.emplace_back(held_input("x" + std::to_string(seed), sample(type, seed)));
  }
  const auto next = [&](const LazyTensor& h, const LazyTensor& x) {
    return tanh(mm(x, inputs[2]) + mm(h, inputs[3]) + inputs[4]);
  };
  const ScanStep loop = scan(
      [&](const LazyTensors& h, const LazyTensors& x) {
        const LazyTensor now = next(h[0], x[0]);
        return ScanStep{{now}, {sum(now * now)}};
      },
      {inputs[1]}, {inputs[0]});
  LazyTensor h = inputs[1], unrolled;
  for (int64_t i = 0; i < 5; ++i) {
    h = next(h, select_at(inputs[0], 0, i));
    unrolled = i == 0 ? sum(h * h) : unrolled + sum(h * h);
  }
  const LazyTensors by(inputs.begin(), inputs.end());
  const auto ours = grad(sum(loop.outputs[0]), by), expected = grad(unrolled, by);
  for (size_t i = 0; i < by.size(); ++i) {
    const Numbers found = numbers(ours[i]), wanted = numbers(expected[i]);
    for (size_t k = 0; k < wanted.size(); ++k) EXPECT_NEAR(found[k], wanted[k], 1e-13);
  }
}

// A branch that depends on data: mean(sin(t) t), where t is x^2 / 2, or -x / 8 if sum(x) < 0.
LazyTensors sqrl(const LazyTensors& x) {
  const LazyTensor t = cond(
      sum(x[0]) < 0, [&](const LazyTensors&) { return LazyTensors{x[0] * -0.125}; },
      [&](const LazyTensors&) { return LazyTensors{x[0] * x[0] / 2}; })[0];
  return {mean(sin(t) * t)};
}

TEST(GradientOfControlFlow, of_a_branch_in_a_batch) {
  const Numbers batch = {1, 2, -0.5, 0.25, -3, 1, 1.5, -2};
  const LazyTensor x = held("x", {2, 4}, batch);
  const LazyTensor y = vmap(sqrl)({x})[0];
  const Numbers values = numbers(y), gradient = numbers(grad(sum(y), {x})[0]);
  for (size_t row = 0; row < 2; ++row) {
    const bool negative = row == 1;
    double expected = 0;
    for (size_t i = 4 * row; i < 4 * row + 4; ++i) {
      const double t = negative ? -batch[i] / 8 : batch[i] * batch[i] / 2;
      const double slope = negative ? -0.125 : batch[i];
      expected += std::sin(t) * t / 4;
      EXPECT_NEAR(gradient[i], (std::cos(t) * t + std::sin(t)) * slope / 4, 1e-15);
    }
    EXPECT_NEAR(values[row], expected, 1e-15);
  }
}

TEST(GradientOfControlFlow, of_elements) {
  const TensorFunction f = elementwise([](const LazyTensors& x) {
    return cond(
        x[0] < x[1], [&](const LazyTensors&) { return LazyTensors{x[0] * x[1]}; },
        [&](const LazyTensors&) {
          return while_loop(  // halved until it is small
              [&](const LazyTensors& v) { return v[0] > 0.5; },
              [](const LazyTensors& v) { return LazyTensors{v[0] / 2}; }, {x[0]}, {.limit = 10});
        });
  });
  const LazyTensor x = held("x", {3}, {1, 3, 0.25}), y = held("y", {}, {2});
  const auto gradients = grad(sum(f({x, y})[0]), {x, y});
  EXPECT_EQ(numbers(gradients[0]), (Numbers{2, 0.125, 2}));
  EXPECT_EQ(numbers(gradients[1]), (Numbers{1.25}));
}

TEST(GradientOfControlFlow, has_a_tangent) {
  const LazyTensor x = scalar("x", 9), t = scalar("t", 3);
  const Pushforward push =
      jvp([](const LazyTensors& in) { return LazyTensors{root_of(in[0], 40)}; }, {x}, {t});
  EXPECT_NEAR(numbers(push.tangents[0])[0], 0.5, 1e-9);
}

// Nodes of the derivative of a loop, and of its derivative, do not grow with the number of trips.
TEST(GradientOfControlFlow, is_a_loop) {
  const auto nodes_of = [](int64_t length) {
    const LazyTensor x = input("x", tensor_type(DType::float64, {}));
    const LossFunction power = [&](const LazyTensors& in) {
      return scan(
                 [&](const LazyTensors& h, const LazyTensors&) {
                   return ScanStep{{h[0] * in[0]}, {}};
                 },
                 {ones_like(in[0])}, {}, {.length = length})
          .carried[0];
    };
    const LossFunction slope = [&](const LazyTensors& in) { return grad(power)(in)[0]; };
    return grad(slope)({x})[0].graph().size();
  };
  EXPECT_EQ(nodes_of(10), nodes_of(1000));
}

}  // namespace
}  // namespace composit
