#include "tests/passes/computable_graph.h"

#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit::test {
namespace {

constexpr int64_t kSize = 4;

LazyTensor one(const char* name, std::vector<ArgumentValue> arguments) {
  return apply_one(name, std::move(arguments));
}
LazyTensor numbers() {
  const std::vector<double> values = {0.5, -1.25, 3, 0};
  return constant(array_of(tensor_type(DType::float64, {kSize}), values));
}

// Each gives float64[4, 4] from two of these.
using Rule = LazyTensor (*)(const LazyTensor&, const LazyTensor&);
using T = const LazyTensor&;

const std::vector<Rule> kArithmetic = {
    [](T a, T b) { return a + b; },
    [](T a, T b) { return a * tanh(b); },
    [](T a, T b) { return a - b / 3; },
    [](T a, T) {
      return one("aten::mul.Scalar", {a, 0.75});
    },
    [](T a, T) {
      return one("aten::add.Scalar", {a, 2, 3});
    },
    [](T a, T) {
      return one("aten::rsub.Scalar", {a, 1});
    },
    [](T a, T b) {
      return one("aten::full_like", {b, 2.5}) - a;
    },
    [](T a, T) { return -(-sigmoid(a)); },
    [](T a, T) {
      return one("aten::true_divide.Scalar", {a, 2}) - 0;
    },
    [](T a, T) { return a * 1 + one("aten::ones_like", {a}) * a; },
    [](T a, T) {
      return one("aten::softmax.int", {a, -1});
    },
    [](T a, T) {
      return one("aten::layer_norm", {a, Ints{kSize}});
    },
    [](T a, T) {
      return one("aten::gelu", {a}) + one("aten::dropout", {a, 0.5, false});
    },
    [](T a, T b) { return where(a < b, a, numbers()); },
    [](T a, T) { return a * (numbers() * 2 + numbers()); },
    [](T a, T) { return where(arange(kSize) < 2, a, a * 2); },
    [](T a, T b) {
      return a + sum(b, {-1, 0}) + mean(b, {1}, true);
    },
    [](T a, T b) { return a * one("aten::sum", {b}) + exp(-square(b)); },
};

const std::vector<Rule> kProducts = {
    [](T a, T b) {
      return one("aten::addmm", {numbers(), a, one("aten::t", {b})});
    },
    [](T a, T b) { return mm(a, transpose(b, 0, 1)); },
    [](T a, T b) { return matmul(a, transpose(b, -1, -2)) + select_at(b, 0, -1); },
    [](T a, T b) {
      return one("aten::linear", {a, b, numbers()});
    },
    [](T a, T b) {
      return reshape(matmul(reshape(a, {2, 2, 4}), permute(b, {1, 0})), {4, 4});
    },
    [](T a, T b) {
      return reshape(bmm(unsqueeze(a, 0), unsqueeze(b, 0)), {4, 4});
    },
};

const std::vector<Rule> kMovements = {
    [](T a, T) { return transpose(transpose(a, 0, 1), -1, 0); },
    [](T a, T) {
      return one("aten::t", {permute(a, {1, 0})});
    },
    [](T a, T) {
      return reshape(one("aten::view", {a, Ints{2, -1}}), {4, 4});
    },
    [](T a, T) {
      return one("aten::squeeze.dim", {unsqueeze(a, -1), -1});
    },
    [](T a, T) {
      return one("aten::unflatten.int", {one("aten::flatten.using_ints", {a}), 0, Ints{4, -1}});
    },
    [](T a, T) { return one("aten::clone", {one("aten::contiguous", {a})}); },
    [](T a, T b) {
      return one("aten::type_as", {one("aten::_cast_Float", {a}), b});
    },
    [](T a, T) { return slice(a, 0, 0, 100); },
    [](T a, T b) {
      return cat({slice(a, 0, -3, 4), one("aten::narrow", {b, 0, 1, 1})}, 0);
    },
    [](T a, T b) {
      return cat({apply("aten::chunk", {a, 2, 1})[1], apply("aten::split.Tensor", {b, 2, -1})[0]},
                 1);
    },
    [](T a, T) {
      return expand(slice(a, 0, 1, 2), {4, 4});
    },
    [](T a, T) { return flip(flip(a, {0}), {-2}); },
    [](T a, T) {
      return one("aten::index_select", {a, 0, one("aten::flip", {arange(kSize), Ints{0}})});
    },
};

ScanStep mix_rows(const LazyTensors& h, const LazyTensors& row) {
  const LazyTensor next = tanh(h[0] - row[0] * 0.5);
  return {{next}, {next + 0, h[0] * row[0]}};
}

const std::vector<Rule> kBranchesAndLoops = {
    [](T a, T b) {
      return cond(
          sum(a) < 0, [&](const LazyTensors&) { return LazyTensors{a * b + 0}; },
          [&](const LazyTensors&) { return LazyTensors{a - square(b)}; })[0];
    },
    [](T a, T b) {
      const LazyTensor first = select_at(b, 0, 0);
      return scan(mix_rows, {first}, {a}).outputs[0] + scan(mix_rows, {first}, {a}).carried[0];
    },
    [](T a, T b) { return scan(mix_rows, {mean(b, {0})}, {a}, {.reverse = true}).outputs[1]; },
    [](T a, T b) {
      const auto f = [&](const LazyTensors& row) {
        return LazyTensors{exp(row[0]), row[0] * sum(b), softmax(row[0], -1)};
      };
      return map(f, {a})[1] + map(f, {a})[2];
    },
    [](T a, T b) {
      return while_loop([](const LazyTensors& v) { return sum(square(v[0])) > 2; },
                        [&](const LazyTensors& v) { return LazyTensors{v[0] / 2 + b * 0.01}; }, {a},
                        {.limit = 20})[0];
    },
};

std::vector<Rule> all_rules() {
  std::vector<Rule> all;
  for (const auto* rules : {&kArithmetic, &kProducts, &kMovements, &kBranchesAndLoops})
    all.insert(all.end(), rules->begin(), rules->end());
  return all;
}

}  // namespace

ComputableGraph::Step ComputableGraph::random_step() {
  static const size_t rules = all_rules().size();
  return {random_() % rules, random_() % 3, random_() % 4};
}

void ComputableGraph::apply_step(const Step& step) {
  static const std::vector<Rule> rules = all_rules();
  const auto recent = [&](size_t back) { return values_[values_.size() - 1 - back]; };
  // Values between -1 and 1 neither overflow nor make NaNs.
  values_.push_back(tanh(rules[step.rule](recent(step.a), recent(step.b))));
}

Graph ComputableGraph::make() {
  Graph::Parts parts;
  for (const char* name : {"a", "b", "c", "d"}) {
    parts.inputs.push_back(input(name, tensor_type(DType::float64, {kSize, kSize})));
    values_.emplace_back(parts.inputs.back());
  }
  for (int part = 0; part < 3; ++part) {
    std::vector<Step> steps(1 + random_() % 6);
    for (Step& step : steps) step = random_step();
    const size_t times = 1 + random_() % 5;
    for (size_t i = 0; i < times; ++i)
      for (const Step& step : steps) apply_step(step);
  }
  parts.outputs = {values_.back(), values_[values_.size() / 2]};
  return Graph(std::move(parts));
}

std::vector<Array> random_inputs(const Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Array> arrays;
  for (const LazyTensor& input : graph.inputs()) {
    std::vector<double> values(static_cast<size_t>(input.type().numel()));
    for (double& value : values) value = normal(random);
    arrays.push_back(array_of(input.type(), values));
  }
  return arrays;
}

}  // namespace composit::test
