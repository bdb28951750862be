// Trips that a program repeats as often as a size says become one scan; what comes out computes
// what the program does at sizes that nobody showed.
#include "composit/family/roll_scans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/family/cases.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

// What a program makes of %x, float32[batch, time, 4], and of %w, float32[4, 4].
using TimeProgram = std::function<LazyTensors(const LazyTensor& x, const LazyTensor& w)>;

struct Extents {
  int64_t batch, time;
};

Graph time_graph(const TimeProgram& program, const Extents& sizes) {
  const LazyTensor x = input("x", tensor_type(DType::float32, {sizes.batch, sizes.time, 4}));
  const LazyTensor w = input("w", tensor_type(DType::float32, {4, 4}));
  return Graph({.inputs = {x, w}, .outputs = program(x, w)});
}

std::vector<Array> arrays_at(const Extents& sizes) {
  std::mt19937 random(static_cast<unsigned>(100 * sizes.batch + sizes.time));
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<Array> arrays;
  for (const Dims& dims : {Dims{sizes.batch, sizes.time, 4}, Dims{4, 4}}) {
    const Type type = tensor_type(DType::float32, dims);
    std::vector<float> values(static_cast<size_t>(type.numel()));
    for (float& value : values) value = uniform(random);
    arrays.push_back(Array::copy_of(type, values.data()));
  }
  return arrays;
}

Cases time_family(const TimeProgram& program, const std::vector<Extents>& shown) {
  std::vector<Graph> graphs;
  for (const Extents& sizes : shown) graphs.push_back(time_graph(program, sizes));
  return unify_cases(graphs, {.names = {"batch", "time"}});
}

const std::vector<Extents> kShownExtents = {{2, 4}, {3, 8}, {5, 12}, {4, 6}};
const std::vector<Extents> kAskedExtents = {{2, 6}, {4, 10}, {5, 4}, {3, 12}, {2, 8}};

// Equal to the last bit, at what was shown and elsewhere.
void expect_same(const TimeProgram& program, const std::vector<Extents>& shown = kShownExtents,
                 const std::vector<Extents>& asked = kAskedExtents) {
  const Cases family = time_family(program, shown);
  ASSERT_EQ(family.cases.size(), 1U);
  EXPECT_THAT(print(family), HasSubstr("composit::scan"));
  std::vector<Extents> all = asked;
  all.insert(all.end(), shown.begin(), shown.end());
  for (const Extents& sizes : all) {
    const Graph graph = graph_at(family, {{"batch", sizes.batch}, {"time", sizes.time}});
    verify(graph);
    EXPECT_EQ(evaluate(graph, arrays_at(sizes)),
              evaluate(time_graph(program, sizes), arrays_at(sizes)))
        << sizes.batch << "x" << sizes.time << "\n"
        << print(graph);
  }
}

LazyTensor at(const LazyTensor& x, int64_t time) { return select_at(x, 1, time); }
LazyTensor stack(const LazyTensors& parts, int64_t axis) {
  return apply_one("aten::stack", {parts, axis});
}
LazyTensor zeros_for(const LazyTensor& x) { return zeros({x.size(0), 4}, DType::float32); }
LazyTensor cell(const LazyTensor& h, const LazyTensor& x, const LazyTensor& w) {
  return tanh(matmul(h, w) + x);
}

// The last state, and all of them.
LazyTensors forward(const LazyTensor& x, const LazyTensor& w) {
  LazyTensor h = zeros_for(x);
  LazyTensors all;
  for (int64_t t = 0; t < x.size(1); ++t) all.push_back(h = cell(h, at(x, t), w));
  return {h, stack(all, 1)};
}

LazyTensors backward(const LazyTensor& x, const LazyTensor& w) {
  LazyTensor h = zeros_for(x);
  LazyTensors all;
  for (int64_t t = x.size(1); t-- > 0;) all.insert(all.begin(), h = cell(h, at(x, t), w));
  return {h * 2, stack(all, 0)};
}

TEST(RollScans, AStateOverTime) { expect_same(forward); }
TEST(RollScans, BackInTime) { expect_same(backward); }
TEST(RollScans, BothWays) {
  expect_same([](const LazyTensor& x, const LazyTensor& w) {
    return LazyTensors{stack({forward(x, w)[1], transpose(backward(x, w)[1], 0, 1)}, -1)};
  });
}
TEST(RollScans, OneBehindTheOther) {
  expect_same(
      [](const LazyTensor& x, const LazyTensor& w) { return forward(forward(x, w)[1], w + 1.0); });
}

TEST(RollScans, StatesOfTwoLayers) {
  expect_same([](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor a = zeros_for(x), b = a;
    LazyTensors all;
    for (int64_t t = 0; t < x.size(1); ++t) {
      a = cell(a, at(x, t), w);
      b = cell(b, a, w * 0.5);
      all.push_back(unsqueeze(b, 1));
    }
    return LazyTensors{cat(all, 1), a};
  });
}

TEST(RollScans, TheFirstTripIsAnotherOne) {
  expect_same([](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor h = at(x, 0);
    LazyTensors all = {h};
    for (int64_t t = 1; t < x.size(1); ++t) all.push_back(h = cell(h, at(x, t), w));
    all.push_back(h + 1.0);
    return LazyTensors{stack(all, 2), cat(all, 1)};
  });
}

TEST(RollScans, NeighboursInTime) {  // Euler's method over points in time
  expect_same([](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor h = zeros_for(x);
    LazyTensors times;
    for (int64_t t = 0; t < x.size(1); ++t) times.push_back(at(x, t));
    for (int64_t t = 0; t + 1 < x.size(1); ++t)
      h = h + (times[t + 1] - times[t]) * tanh(matmul(h, w));
    return LazyTensors{h};
  });
}

TEST(RollScans, ValuesOfSeveralTripsBefore) {
  expect_same([](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor a = at(x, 0), b = at(x, 1);
    LazyTensors all;
    for (int64_t t = 2; t < x.size(1); ++t) {
      const LazyTensor next = tanh(matmul(a, w) + b * at(x, t));
      a = b;
      b = next;
      all.push_back(next);
    }
    return LazyTensors{b, stack(all, 1)};
  });
  expect_same(
      [](const LazyTensor& x, const LazyTensor& w) {  // the third before, alone
        LazyTensors y = {at(x, 0), at(x, 1), at(x, 0) * 2};
        for (int64_t t = 0; t < x.size(1); ++t) y.push_back(cell(y[y.size() - 3], at(x, t), w));
        return LazyTensors{y.back(), y[y.size() - 2] * y[y.size() - 3]};
      },
      {{2, 5}, {3, 8}, {5, 12}, {4, 6}}, {{2, 6}, {4, 9}, {5, 5}, {3, 12}, {2, 7}});
}

TEST(RollScans, WindowsStepsAndPieces) {
  expect_same(
      [](const LazyTensor& x, const LazyTensor& w) {
        LazyTensor h = zeros_for(x);
        for (int64_t t = 0; t + 3 <= x.size(1); ++t)
          h = cell(h, sum(slice(x, 1, t, t + 3), {1}), w);
        return LazyTensors{h};
      },
      {{2, 5}, {3, 8}, {5, 12}, {4, 6}}, {{2, 6}, {4, 9}, {5, 5}, {3, 12}, {2, 7}});
  expect_same([](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor h = zeros_for(x);
    for (int64_t t = 0; t < x.size(1); t += 2) h = cell(h, at(x, t), w);
    return LazyTensors{h};
  });
  expect_same([](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor h = zeros_for(x);
    for (const LazyTensor& part : apply("aten::unbind.int", {x, int64_t{1}})) h = cell(h, part, w);
    for (const LazyTensor& part : apply("aten::split.Tensor", {x, int64_t{2}, int64_t{1}}))
      h = cell(h, sum(part, {1}), w);
    return LazyTensors{h};
  });
}

TEST(RollScans, AsOftenAsASizeSays) {
  expect_same([](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor h = sum(x, {1});
    for (int64_t t = 0; t < 2 * x.size(1) - 1; ++t) h = tanh(matmul(h, w));
    return LazyTensors{h};
  });
}

// Rows that are written one by one, and read where they were written.
TEST(RollScans, WritesInto) {
  const auto write = [](const LazyTensor& into, const LazyTensor& value, int64_t time) {
    return apply_one("aten::select_scatter", {into, value, int64_t{1}, time});
  };
  expect_same([&](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor h = zeros_for(x), all = zeros_like(x);
    for (int64_t t = 0; t < x.size(1); ++t) all = write(all, h = cell(h, at(x, t), w), t);
    return LazyTensors{all, h};
  });
  expect_same([&](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor all = x * 1.0;
    for (int64_t t = 1; t < x.size(1); ++t) all = write(all, cell(at(all, t - 1), at(x, t), w), t);
    return LazyTensors{all};
  });
  expect_same([&](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor all = x * 1.0;
    for (int64_t t = x.size(1) - 1; t > 0; --t) all = write(all, cell(at(x, t), at(x, 0), w), t);
    return LazyTensors{all};
  });
}

TEST(RollScans, DerivativesAreThoseOfTheTrips) {
  const TimeProgram loss = [](const LazyTensor& x, const LazyTensor& w) {
    return LazyTensors{sum(square(forward(x, w)[1]) * x)};
  };
  const Cases family = time_family(loss, kShownExtents);
  const auto slopes = [](const Graph& graph, const Extents& sizes) {
    return evaluate(
        Graph({.inputs = graph.inputs(), .outputs = grad(graph.outputs()[0], graph.inputs())}),
        arrays_at(sizes));
  };
  for (const Extents& sizes : kAskedExtents) {
    const auto received =
        slopes(graph_at(family, {{"batch", sizes.batch}, {"time", sizes.time}}), sizes);
    const auto expected = slopes(time_graph(loss, sizes), sizes);
    for (size_t i = 0; i < expected.size(); ++i) {
      const Array a = received[i].contiguous(), b = expected[i].contiguous();
      for (int64_t n = 0; n < a.type().numel(); ++n) {
        float x = 0, y = 0;
        std::memcpy(&x, a.data() + 4 * n, 4);
        std::memcpy(&y, b.data() + 4 * n, 4);
        EXPECT_NEAR(x, y, 1e-4 * (1 + std::abs(y)));
      }
    }
  }
}

// As many trips in all examples; trips that differ; values of trips that are none of the last one
// and none of all; a value that grows.
TEST(RollScans, WhatIsNoLoopStaysWhatItIs) {
  const auto loops = [](const TimeProgram& program) {
    std::vector<Graph> graphs;
    for (const Extents& sizes : kShownExtents) graphs.push_back(time_graph(program, sizes));
    return roll_scans(graphs).size();
  };
  EXPECT_EQ(loops(forward), 1U);
  EXPECT_EQ(loops([](const LazyTensor& x, const LazyTensor& w) {
              LazyTensor h = at(x, 0);
              for (int i = 0; i < 3; ++i) h = cell(h, h, w);
              return LazyTensors{h};
            }),
            0U);
  EXPECT_EQ(loops([](const LazyTensor& x, const LazyTensor& w) {
              LazyTensor h = zeros_for(x);
              for (int64_t t = 0; t < x.size(1); ++t)
                h = cell(h, at(x, t), w) * (1.0 / static_cast<double>(1 + t));
              return LazyTensors{h};
            }),
            0U);
  EXPECT_EQ(loops([](const LazyTensor& x, const LazyTensor&) {
              LazyTensor h = slice(x, 1, 0, 1);
              for (int64_t t = 1; t < x.size(1); ++t)
                h = cat({h, tanh(sum(h, {1}, true)) + slice(x, 1, t, t + 1)}, 1);
              return LazyTensors{h};
            }),
            0U);
}

// Each index is written twice; what stood there in between is read.
TEST(RollScans, WritesThatStayWhatTheyAre) {
  const TimeProgram overlapping = [](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor all = x * 1.0;
    for (int64_t t = 0; t + 1 < x.size(1); ++t)
      all = apply_one("aten::slice_scatter", {all, tanh(matmul(slice(x, 1, t, t + 2), w)),
                                              int64_t{1}, t, t + 2, int64_t{1}});
    return LazyTensors{all};
  };
  const TimeProgram read = [](const LazyTensor& x, const LazyTensor& w) {
    LazyTensor all = x * 1.0, second;
    for (int64_t t = 0; t < x.size(1); ++t) {
      all = apply_one("aten::select_scatter", {all, tanh(matmul(at(x, t), w)), int64_t{1}, t});
      if (t == 1) second = all * 2.0;
    }
    return LazyTensors{all, second};
  };
  for (const TimeProgram& program : {overlapping, read}) {
    std::vector<Graph> graphs;
    for (const Extents& sizes : kShownExtents) graphs.push_back(time_graph(program, sizes));
    std::vector<Graph> now = graphs;
    const std::vector<ScanShape> loops = roll_scans(now);
    for (size_t i = 0; i < graphs.size(); ++i) {
      EXPECT_EQ(now[i], rolled(graphs[i], loops));
      verify(now[i]);
      EXPECT_EQ(evaluate(now[i], arrays_at(kShownExtents[i])),
                evaluate(graphs[i], arrays_at(kShownExtents[i])));
    }
  }
}

TEST(RollScans, AreNamed) {
  ScanShape loop;
  loop.place = "cells.cpp:9";
  loop.shown = {7, 3, 7};
  EXPECT_EQ(print(loop), "loop at cells.cpp:9: shown with 3, 7 trips");
}

// A program of a loop over time: states that mix, and what is read of them.
class RandomTimeProgram {
 public:
  explicit RandomTimeProgram(unsigned seed) : seed_(seed) {}

  LazyTensors operator()(const LazyTensor& x, const LazyTensor& w) const {
    std::mt19937 random(seed_);
    const auto pick = [&](size_t count) { return random() % count; };
    const size_t states = 1 + pick(3), steps = 2 + pick(5);
    const int64_t skipped = static_cast<int64_t>(pick(3));
    const bool is_reverse = pick(2) == 0;
    LazyTensors state(states, zeros_for(x));
    if (pick(2) == 0) state[0] = at(x, 0);
    std::vector<LazyTensors> all(states);
    LazyTensors older = state;  // of the trip before
    for (int64_t i = skipped; i < x.size(1); ++i) {
      const int64_t t = is_reverse ? x.size(1) - 1 - i : i;
      std::mt19937 body(seed_ + 1);  // the same in each trip
      LazyTensors values = state;
      if (seed_ % 4 == 1) values.push_back(older[0]);
      older = state;
      values.push_back(at(x, t));
      if (seed_ % 3 == 0) values.push_back(select_at(transpose(x, 0, 1), 0, i));
      for (size_t s = 0; s < steps; ++s) {
        const LazyTensor &a = values[body() % values.size()], &b = values[body() % values.size()];
        const size_t kind = body() % 4;
        values.push_back(kind == 0   ? tanh(a + b)
                         : kind == 1 ? matmul(a, w)
                         : kind == 2 ? a * b
                                     : sigmoid(a) - 0.25);
      }
      for (size_t s = 0; s < states; ++s) state[s] = values[values.size() - 1 - body() % steps];
      for (size_t s = 0; s < states; ++s) all[s].push_back(state[s]);
    }
    LazyTensors results = {state[pick(states)]};
    results.push_back(stack(all[pick(states)], static_cast<int64_t>(pick(3))));
    if (pick(2) == 0) results.push_back(cat(all[pick(states)], static_cast<int64_t>(pick(2))));
    return results;
  }

 private:
  unsigned seed_;
};

TEST(RollScans, RandomPrograms) {
  size_t rolled = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    const RandomTimeProgram program(seed);
    std::optional<Cases> family;
    const auto refused = user_error([&] { family = time_family(program, kShownExtents); });
    if (refused) continue;  // right or refused
    ++rolled;
    for (const Extents& sizes : kAskedExtents) {
      const Graph graph = graph_at(*family, {{"batch", sizes.batch}, {"time", sizes.time}});
      verify(graph);
      const Graph expected = time_graph(program, sizes);
      EXPECT_EQ(evaluate(graph, arrays_at(sizes)), evaluate(expected, arrays_at(sizes)))
          << "seed " << seed << "\n"
          << print(expected) << print(graph);
    }
  }
  EXPECT_GT(rolled, 90U);
}

}  // namespace
}  // namespace composit
