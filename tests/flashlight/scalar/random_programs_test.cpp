// Random programs with branches and loops: traced with symbolic numbers, and as graphs of cond,
// scan and while_loop, they give what C++ gives; derivatives are compared with dual numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "composit/ad/functional.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/graph.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "flashlight/scalar/scalar.h"
#include "tests/flashlight/scalar/random_program.h"
#include "tests/ir/random_graph.h"
#include "tests/user_error.h"

namespace flashlight::test {
namespace {

using composit::LazyTensor;
using composit::LazyTensors;
using composit::tensor_type;
using Values = std::vector<double>;

constexpr size_t kAll = kInputs + kSlots;

Values inputs_of(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Values values(kAll);
  for (double& value : values) value = normal(random);
  return values;
}

template <class T>
std::vector<T> run_all(const Program& program, const std::vector<T>& x) {
  return run<T>(program, {x.begin(), x.begin() + kInputs}, {x.begin() + kInputs, x.end()});
}
// The sum of the results, the second one twice.
template <class T>
T loss_of(const Program& program, const std::vector<T>& x) {
  const std::vector<T> y = run_all(program, x);
  return y[0] + y[1] + y[1];
}

// By dual numbers: the gradient, and the gradient of its sum.
Values slopes(const Program& program, const Values& x) {
  Values gradient;
  for (size_t i = 0; i < kAll; ++i) {
    std::vector<Dual<double>> duals(x.begin(), x.end());
    duals[i].slope = 1;
    gradient.push_back(loss_of(program, duals).slope);
  }
  return gradient;
}
Values second_slopes(const Program& program, const Values& x) {
  using Second = Dual<Dual<double>>;
  Values gradient;
  for (size_t i = 0; i < kAll; ++i) {
    std::vector<Second> duals;
    for (size_t k = 0; k < kAll; ++k) duals.push_back({{x[k], double(k == i)}, {1.0, 0.0}});
    gradient.push_back(loss_of(program, duals).slope.slope);
  }
  return gradient;
}

void expect_near(const Values& found, const Values& expected, const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-11 * std::max(1.0, std::abs(expected[i])))
        << what << " " << i;
}

TEST(RandomPrograms, traced_with_symbolic_numbers) {
  const uint64_t programs = composit::test::fuzz_runs(400);
  size_t traced = 0;
  for (uint64_t seed = 0; seed < programs; ++seed) {
    const Program program = random_program(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(program));
    std::optional<ScalarFunction> f;
    const auto refused = composit::user_error([&] {
      f.emplace(trace_numbers(kAll, [&](const Numbers& x) { return run_all(program, x); },
                              {.paths = 300}));
    });
    if (refused) continue;  // too many paths
    ++traced;
    const Values x = inputs_of(seed);
    expect_near(f->values(x), run_all(program, x), "result");
    const Values gradient = f->vjp(x, {1, 2});
    expect_near(gradient, slopes(program, x), "gradient");
    if (HasFailure()) return;
  }
  EXPECT_GT(traced, programs * 3 / 4);
}

Values numbers(const std::vector<composit::Array>& arrays) {
  Values all;
  for (const composit::Array& array : arrays)
    for (double value : composit::elements<double>(array)) all.push_back(value);
  return all;
}

TEST(RandomPrograms, as_graphs) {
  for (uint64_t seed = 0; seed < composit::test::fuzz_runs(400); ++seed) {
    const Program program = random_program(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(program));
    LazyTensors inputs;
    for (const char* name : {"a", "b", "c"})
      inputs.emplace_back(composit::input(name, tensor_type(composit::DType::float64, {})));
    inputs.emplace_back(composit::input("xs", tensor_type(composit::DType::float64, {kSlots})));
    const composit::TensorFunction f = [&](const LazyTensors& x) {
      return run(program, LazyTensors(x.begin(), x.begin() + kInputs), x[kInputs]);
    };
    const auto loss = [&](const LazyTensors& x) {
      const LazyTensors y = f(x);
      return y[0] + 2 * y[1];
    };
    const auto slope = [&](const LazyTensors& x) {
      LazyTensor total;
      for (const LazyTensor& gradient : composit::grad(loss)(x))
        total = total.defined() ? total + sum(gradient) : sum(gradient);
      return total;
    };
    composit::Graph::Parts parts;
    parts.inputs.assign(inputs.begin(), inputs.end());
    for (const LazyTensors& group :
         {f(inputs), composit::grad(loss)(inputs), composit::grad(slope)(inputs)})
      parts.outputs.insert(parts.outputs.end(), group.begin(), group.end());
    const composit::Graph graph(std::move(parts));
    verify(graph);
    ASSERT_EQ(composit::parse(composit::print(graph)), graph);
    const Values x = inputs_of(seed);
    std::vector<composit::Array> arrays;
    for (size_t i = 0; i < kInputs; ++i)
      arrays.push_back(composit::array_of(inputs[i].type(), Values{x[i]}));
    arrays.push_back(
        composit::array_of(inputs[kInputs].type(), Values(x.begin() + kInputs, x.end())));
    Values expected = run_all(program, x);
    for (const Values& more : {slopes(program, x), second_slopes(program, x)})
      expected.insert(expected.end(), more.begin(), more.end());
    expect_near(numbers(evaluate(graph, arrays)), expected, "number");
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace flashlight::test
