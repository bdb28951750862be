// Loops that read a little of a tensor from outside in each trip: their derivatives are right, and
// compute a little in each trip.
#include <gtest/gtest.h>

#include <numeric>

#include "composit/ad/chain_rule.h"
#include "composit/ir/print.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/vmap.h"
#include "tests/ad/loss_check.h"

namespace composit {
namespace {

LazyTensor number(int64_t value) { return full({}, value, DType::int64); }
LazyTensor at(const LazyTensor& v, const LazyTensor& i) {
  return apply_one("aten::index.Tensor", {v, LazyTensors{i}});
}
LazyTensor modulo(const LazyTensor& i, int64_t n) {
  return apply_one("aten::remainder.Scalar", {i, Scalar(n)});
}
LazyTensor one_index(const LazyTensor& i) { return reshape(i, {1}); }

// A way to read a part of a tensor that depends on a number, which is less than 6.
struct Read {
  std::string name;
  std::function<LazyTensor(const LazyTensor& v, const LazyTensor& i)> part;
  Dims smallest = {24};  // of v; other sizes have more rows
};
void PrintTo(const Read& read, std::ostream* out) { *out << read.name; }

std::vector<Read> reads() {
  using T = const LazyTensor&;
  return {
      {"an_element", [](T v, T i) { return at(v, i); }},
      {"an_element_from_the_end", [](T v, T i) { return at(v, i - 6); }},
      {"an_element_several_times", [](T v, T i) { return at(v, modulo(i, 2)); }},
      {"two_elements", [](T v, T i) { return at(v, i) * sin(at(v, 5 - i)); }},
      {"an_element_in_two_places", [](T v, T i) { return at(v, i) * sin(at(v, i)); }},
      {"the_same_element", [](T v, T) { return select_at(v, 0, 3); }},
      {"the_same_elements", [](T v, T) { return slice(v, 0, 1, 9, 3); }},
      {"fixed_and_moving", [](T v, T i) { return select_at(v, 0, -1) * at(v, i); }},
      {"a_row", [](T v, T i) { return at(v, i); }, {8, 2}},
      {"an_element_of_a_row", [](T v, T i) { return at(at(v, i), modulo(i, 2)); }, {8, 2}},
      {"an_element_of_a_fixed_row", [](T v, T i) { return at(select_at(v, 0, 2), i); }, {8, 6}},
      {"an_element_of_a_column",
       [](T v, T i) { return at(select_at(transpose(v, 0, 1), 0, 1), i); },
       {8, 2}},
      {"an_element_of_a_view", [](T v, T i) { return at(reshape(v, {-1}), i * 2 + 1); }, {8, 2}},
      {"by_index_select",
       [](T v, T i) {
         return apply_one("aten::index_select", {v, 0, one_index(i)});
       },
       {8, 2}},
      {"by_gather",
       [](T v, T i) {
         return apply_one("aten::gather", {v, 0, one_index(i)});
       }},
      {"by_embedding",
       [](T v, T i) {
         return apply_one("aten::embedding", {v, one_index(i)});
       },
       {8, 2}},
      {"by_embedding_less_its_padding",
       [](T v, T i) {
         return apply_one("aten::embedding", {v, one_index(i), 3});
       },
       {8, 2}},
      {"in_a_branch",
       [](T v, T i) {
         return cond(
             i > 2, [&](const LazyTensors&) { return LazyTensors{at(v, i)}; },
             [&](const LazyTensors&) {
               return LazyTensors{sin(select_at(v, 0, 7)) + at(v, i)};
             })[0];
       }},
      {"in_one_branch_only",
       [](T v, T i) {
         return cond(
             i > 2, [&](const LazyTensors&) { return LazyTensors{at(v, i)}; },
             [&](const LazyTensors&) { return LazyTensors{ones_like(select_at(v, 0, 0))}; })[0];
       }},
      {"in_a_loop",
       [](T v, T i) {
         return scan(
                    [&](const LazyTensors& h, const LazyTensors&) {
                      return ScanStep{{h[0] * at(v, h[1]), h[1] + 1}, {}};
                    },
                    {full({}, 1.0, DType::float64), i}, {}, {.length = 3})
             .carried[0];
       }},
      {"in_a_batch", [](T v, T i) {
         return vmap([&](const LazyTensors& k) { return LazyTensors{at(v, k[0])}; })(
             {i + arange(3)})[0];
       }}};
}

// The steps of all loops: h = sin(h) + (a weighted sum of a part of v).
LazyTensor step(const Read& read, const LazyTensor& h, const LazyTensor& v, const LazyTensor& i) {
  const LazyTensor part = read.part(v, i);
  const LazyTensor weights = constant(sample(tensor_type(DType::float64, part.sizes()), 3));
  return sin(h) * sum(part * weights) + 0.5;
}
LazyTensor start() { return full({}, 0.75, DType::float64); }

using LoopOver = std::function<LazyTensor(const Read& read, const LazyTensor& v)>;
LazyTensor as_scan(const Read& read, const LazyTensor& v) {
  return scan(
             [&](const LazyTensors& h, const LazyTensors&) {
               return ScanStep{{step(read, h[0], v, h[1]), h[1] + 1}, {}};
             },
             {start(), number(0)}, {}, {.length = 6})
      .carried[0];
}
LazyTensor as_scan_back(const Read& read, const LazyTensor& v) {
  const ScanBody body = [&](const LazyTensors& h, const LazyTensors& i) {
    return ScanStep{{step(read, h[0], v, i[0])}, {}};
  };
  return scan(body, {start()}, {arange(6)}, {.reverse = true}).carried[0];
}
// Its limit is more than its trips.
LazyTensor as_while(const Read& read, const LazyTensor& v) {
  return while_loop([](const LazyTensors& h) { return h[1] < 6; },
                    [&](const LazyTensors& h) {
                      return LazyTensors{step(read, h[0], v, h[1]), h[1] + 1};
                    },
                    {start(), number(0)}, {.limit = 9})[0];
}
LazyTensor as_map(const Read& read, const LazyTensor& v) {
  return map([&](const LazyTensors& i) { return LazyTensors{step(read, start(), v, i[0])}; },
             {arange(6)})[0];
}
LazyTensor unrolled(const Read& read, const LazyTensor& v, bool back) {
  LazyTensor h = start();
  for (int64_t i = 0; i < 6; ++i) h = step(read, h, v, number(back ? 5 - i : i));
  return h;
}
LazyTensor unrolled_map(const Read& read, const LazyTensor& v) {
  LazyTensors parts;
  for (int64_t i = 0; i < 6; ++i) parts.push_back(reshape(step(read, start(), v, number(i)), {1}));
  return cat(parts, 0);
}

// The elements that the nodes of all regions in a graph compute.
int64_t computed_in_regions(const Graph& graph, bool inside = false) {
  int64_t elements = 0;
  for (const NodePtr& node : graph.nodes()) {
    if (is_input(*node)) continue;
    for (const Type& type : node->outputs())
      if (inside) elements += type.numel();
    for (const char* name : {"body", "then_body", "else_body", "condition"})
      if (const Attribute* region = node->find_attribute(name))
        elements += computed_in_regions(*region->as<Region>(), true);
  }
  return elements;
}

LazyTensor gradient_of(const LoopOver& loop, const Read& read, const LazyTensor& v) {
  return grad(sum(loop(read, v)), {v})[0];
}
// The second one: of a weighted sum of the first.
LazyTensor curvature_of(const LoopOver& loop, const Read& read, const LazyTensor& v) {
  const LazyTensor first = gradient_of(loop, read, v);
  return grad(sum(first * constant(sample(first.type(), 5))), {v})[0];
}

class LoopReads : public testing::TestWithParam<Read> {
 protected:
  const std::vector<std::pair<LoopOver, LoopOver>> loops_ = {
      {as_scan, [](const Read& r, const LazyTensor& v) { return unrolled(r, v, false); }},
      {as_scan_back, [](const Read& r, const LazyTensor& v) { return unrolled(r, v, true); }},
      {as_while, [](const Read& r, const LazyTensor& v) { return unrolled(r, v, false); }},
      {as_map, unrolled_map}};
};

void expect_near(const Numbers& received, const Numbers& expected, size_t loop) {
  ASSERT_EQ(received.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(received[i], expected[i], 1e-13) << "loop " << loop << ", element " << i;
}

TEST_P(LoopReads, have_the_derivatives_of_unrolled_loops) {
  const Read& read = GetParam();
  const LazyTensor v = held_input("v", sample(tensor_type(DType::float64, read.smallest), 1));
  for (size_t i = 0; i < loops_.size(); ++i) {
    const auto& [loop, unrolled] = loops_[i];
    expect_near(numbers(gradient_of(loop, read, v)), numbers(gradient_of(unrolled, read, v)), i);
    expect_near(numbers(curvature_of(loop, read, v)), numbers(curvature_of(unrolled, read, v)), i);
  }
}

TEST_P(LoopReads, have_the_derivatives_of_differences) {
  const Read& read = GetParam();
  if (read.name == "by_embedding_less_its_padding")
    GTEST_SKIP() << "a row that is padding has no gradient, as in torch";
  check([&](const LazyTensors& x) { return LazyTensors{as_scan(read, x[0])}; }, {read.smallest});
}

// <v', gradient> = tangent along v'.
TEST_P(LoopReads, have_tangents) {
  const Read& read = GetParam();
  const LazyTensor v = held_input("v", sample(tensor_type(DType::float64, read.smallest), 1)),
                   along = held_input("along", sample(v.type(), 7));
  for (size_t i = 0; i < loops_.size(); ++i) {
    const LoopOver& loop = loops_[i].first;
    const auto f = [&](const LazyTensors& x) { return LazyTensors{sum(loop(read, x[0]))}; };
    const double tangent = numbers(jvp(f, {v}, {along}).tangents[0])[0];
    EXPECT_NEAR(tangent, numbers(sum(along * gradient_of(loop, read, v)))[0], 1e-12)
        << "loop " << i;
  }
}

// Four times as many rows are no more work, in neither derivative, unless they are for the function
// itself, which may make a view of all in each trip: then a constant times that.
TEST_P(LoopReads, cost_what_they_read) {
  const Read& read = GetParam();
  const auto more_work = [&](const auto& result_of, const LoopOver& loop) {
    const auto work = [&](int64_t factor) {
      Dims sizes = read.smallest;
      sizes[0] *= factor;
      const LazyTensor v = input("v", tensor_type(DType::float64, sizes));
      return computed_in_regions(result_of(loop, read, v).graph());
    };
    return work(4) - work(1);
  };
  const auto itself = [](const LoopOver& loop, const Read& one, const LazyTensor& v) {
    return loop(one, v);
  };
  for (size_t i = 0; i < loops_.size(); ++i) {
    const LoopOver& loop = loops_[i].first;
    const int64_t own = more_work(itself, loop);
    EXPECT_LE(more_work(gradient_of, loop), 2 * own) << "loop " << i;
    EXPECT_LE(more_work(curvature_of, loop), 4 * own) << "loop " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, LoopReads, testing::ValuesIn(reads()),
                         [](const auto& one) { return one.param.name; });

// What is read is a large part: one sum is carried, and nothing is kept of each trip.
TEST(LoopReadsOfMuch, carry_a_sum) {
  const LazyTensor v = input("v", tensor_type(DType::float64, {8}));
  const Read read{"half", [](const LazyTensor& x, const LazyTensor&) { return slice(x, 0, 0, 4); }};
  const Graph gradient = gradient_of(as_scan, read, v).graph();
  for (const NodePtr& node : gradient.nodes())
    for (const Type& type : node->outputs()) EXPECT_TRUE(type.sizes.size() < 2) << print(type);
}

TEST(LoopReadsOfNothing, are_zero) {
  const LazyTensor v = held_input("v", sample(tensor_type(DType::float64, {9}), 1));
  const LazyTensor h = scan(
                           [&](const LazyTensors& carried, const LazyTensors& i) {
                             return ScanStep{{carried[0] * at(v, i[0])}, {}};
                           },
                           {start()}, {arange(0)})
                           .carried[0];
  EXPECT_EQ(numbers(grad(h, {v})[0]), Numbers(9, 0));
}

}  // namespace
}  // namespace composit
