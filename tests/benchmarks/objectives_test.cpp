// Objectives and their adjoints by hand agree with the graphs, the graphs with finite differences,
// and both with numbers that others have published.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "benchmarks/cpp/subjects.h"
#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/numpy/numpy.h"
#include "examples/objectives/activations.h"
#include "examples/objectives/hand_tracking.h"
#include "examples/objectives/problem.h"
#include "examples/objectives/uniform.h"
#include "tests/agreement.h"

namespace composit {

static void PrintTo(DType dtype, std::ostream* out) { *out << name(dtype); }

}  // namespace composit

namespace composit::test {
namespace {

using benchmarks::call;
using benchmarks::Subject;
using benchmarks::subjects;
using objectives::Problem;
namespace cnp = composit::numpy;

std::vector<double> numbers(const Array& array) {
  std::vector<double> result;
  for (int64_t i = 0; i < array.type().numel(); ++i)
    result.push_back(array.type().dtype == DType::float32
                         ? reinterpret_cast<const float*>(array.data())[i]
                         : reinterpret_cast<const double*>(array.data())[i]);
  return result;
}

Array array_of(const Type& type, const std::vector<double>& numbers) {
  return Array::copy_of(type, numbers.data());
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void expect_equal(const std::vector<Array>& ours, const std::vector<Array>& expected,
                  const std::string& name) {
  ASSERT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < ours.size(); ++i)  // Sums of many terms in another order.
    EXPECT_EQ(difference(ours[i], expected[i].contiguous(), 20), "") << name << " result " << i;
}

void expect_by_hand_agrees(const Subject& subject) {
  const auto& [problem, objective, gradient] = subject;
  expect_equal(call(objective, problem.objective, problem.inputs),
               evaluate(problem.objective, problem.inputs), problem.name);
  expect_equal(call(gradient, problem.gradient, problem.inputs),
               evaluate(problem.gradient, problem.inputs), problem.name + " gradient");
}

class ByHand : public testing::TestWithParam<DType> {};

TEST_P(ByHand, AgreesWithGraphs) {
  for (const Subject& subject : subjects(benchmarks::small_sizes(), GetParam()))
    expect_by_hand_agrees(subject);
}

INSTANTIATE_TEST_SUITE_P(Objectives, ByHand, testing::Values(DType::float32, DType::float64),
                         [](const auto& tested) { return std::string(name(tested.param)); });

TEST(ByHand, AgreesForCamerasThatDoNotTurn) {
  for (Subject& subject : subjects({.bundle_adjustment = {{2, 3, 7}}}, DType::float64)) {
    Array& cameras = subject.problem.inputs[0];
    std::vector<double> values = numbers(cameras);
    std::fill_n(values.begin(), 3, 0.0);
    cameras = array_of(cameras.type(), values);
    expect_by_hand_agrees(subject);
  }
}

double absolute_sum(const std::vector<Array>& arrays) {
  double sum = 0;
  for (const Array& array : arrays)
    for (const double number : numbers(array)) sum += std::abs(number);
  return sum;
}

// As benchmarks/cpp/torch_objectives.py computes them in float64, of inputs that it makes itself.
TEST(ByHand, HasTheValuesOfTorch) {
  const std::map<std::string, std::pair<double, double>> expected = {
      {"gmm_d5_k3_n67", {293.30495649286314, 666.2751605536421}},
      {"lstm_l2_c5_h3", {0.9167964019463701, 1.260553325471467}},
      {"bundle_adjustment_n3_m5_p17", {68.48796572745313, 2352.0560458553755}},
      {"hand_tracking_v9_n5", {3.895168756510997, 13.34525521340504}}};
  size_t found = 0;
  for (const auto& [problem, objective, gradient] : subjects(benchmarks::small_sizes())) {
    if (!expected.contains(problem.name)) continue;
    const auto& [value, gradients] = expected.at(problem.name);
    EXPECT_NEAR(absolute_sum(call(objective, problem.objective, problem.inputs)), value,
                1e-12 * value);
    EXPECT_NEAR(absolute_sum(call(gradient, problem.gradient, problem.inputs)), gradients,
                1e-12 * gradients);
    ++found;
  }
  EXPECT_EQ(found, expected.size());
}

// The change of result `result` of the objective, times `weights`, when input `input` moves along
// `direction`.
double slope(const Problem& problem, size_t result, const std::vector<double>& weights,
             size_t input, const std::vector<double>& direction) {
  constexpr double kStep = 1e-5;
  const auto value_at = [&](double step) {
    std::vector<Array> inputs = problem.inputs;
    std::vector<double> moved = numbers(inputs[input]);
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
    inputs[input] = array_of(inputs[input].type(), moved);
    return dot(weights, numbers(evaluate(problem.objective, inputs)[result]));
  };
  return (value_at(kStep) - value_at(-kStep)) / (2 * kStep);
}

std::vector<double> direction_for(const Array& array, uint64_t seed) {
  return numbers(objectives::uniform({.sizes = {array.type().numel()}, .seed = seed, .low = -1}));
}

void expect_slope(double derivative, double slope, const std::string& name) {
  EXPECT_NEAR(derivative, slope, 1e-7 * (1 + std::abs(slope))) << name;
}

// The gradients of the first inputs, by the results after the value.
void expect_gradients_are_slopes(const Problem& problem) {
  const std::vector<Array> results = evaluate(problem.gradient, problem.inputs);
  for (size_t input = 0; input + 1 < results.size(); ++input) {
    const std::vector<double> direction = direction_for(problem.inputs[input], 7);
    expect_slope(dot(numbers(results[input + 1]), direction),
                 slope(problem, 0, {1}, input, direction), problem.name);
  }
}

TEST(Objectives, GradientsAreSlopes) {
  const benchmarks::Sizes sizes = benchmarks::small_sizes();
  for (const auto& gmm : sizes.gmm)
    expect_gradients_are_slopes(
        objectives::gmm_problem(gmm, DType::float64, {.gamma = 1.5, .m = 2}));
  expect_gradients_are_slopes(objectives::hand_tracking_problem({9, 5}));
  for (const auto& lstm : sizes.lstm) expect_gradients_are_slopes(objectives::lstm_problem(lstm));
}

TEST(Objectives, VjpsAreSlopes) {
  for (const Problem& problem : {objectives::sqrl_problem({0, 3, 4}, DType::float64),
                                 objectives::sqrl_problem({20, 5, 7}, DType::float64),
                                 objectives::relu3_problem(33, DType::float64),
                                 objectives::gelu_problem(33, DType::float64)}) {
    const std::vector<double> direction = direction_for(problem.inputs[0], 7);
    expect_slope(dot(numbers(evaluate(problem.gradient, problem.inputs)[0]), direction),
                 slope(problem, 0, numbers(problem.inputs[1]), 0, direction), problem.name);
  }
}

TEST(Objectives, JacobianOfBundleAdjustmentIsSlopes) {
  constexpr int64_t kObservations = 6;  // each of a camera and a point of its own
  Problem problem = objectives::bundle_adjustment_problem({kObservations, 6, kObservations});
  const std::vector<int64_t> each = {0, 1, 2, 3, 4, 5};
  problem.inputs[3] = problem.inputs[4] =
      Array::copy_of(tensor_type(DType::int64, {kObservations}), each.data());
  const std::vector<double> jacobian = numbers(evaluate(problem.gradient, problem.inputs)[2]);
  const std::vector<double> by_weight = numbers(evaluate(problem.gradient, problem.inputs)[3]);

  const std::vector<size_t> widths = {11, 3, 1};  // of cameras, points, weights
  for (size_t observation = 0; observation < each.size(); ++observation)
    for (size_t row = 0, column = 0; row < 2; ++row, column = 0) {
      std::vector<double> error(2 * each.size());
      error[2 * observation + row] = 1;
      for (size_t input = 0; input < widths.size(); ++input)
        for (size_t i = 0; i < widths[input]; ++i, ++column) {
          std::vector<double> direction(widths[input] * each.size());
          direction[widths[input] * observation + i] = 1;
          expect_slope(jacobian[(2 * observation + row) * 15 + column],
                       slope(problem, 0, error, input, direction), problem.name);
        }
    }
  const std::vector<double> weights = numbers(problem.inputs[2]);
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_DOUBLE_EQ(by_weight[i], -2 * weights[i]);
}

// The generator of the test programs of Knossos: ranhash of Press et al., "Numerical Recipes".
double knossos_number(uint64_t v) {
  v = v * 3935559000370003845 + 2691343689449507681;
  v ^= v >> 21;
  v ^= v << 37;
  v ^= v >> 4;
  v *= 4768777513237032717;
  v ^= v << 20;
  v ^= v >> 41;
  v ^= v << 5;
  return static_cast<double>(v) * 0x1p-64;
}

std::vector<double> knossos_numbers(uint64_t seed, int64_t count, double scale) {
  std::vector<double> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(knossos_number(seed + static_cast<uint64_t>(i)) * scale);
  return result;
}

// test/ksc/gmm.ks of Knossos expects 76.0882. More digits: its program in NumPy.
TEST(Objectives, GmmHasTheValueOfKnossos) {
  const int64_t d = 4, k = 10, n = 5, below = d * (d - 1) / 2;
  const cnp::NdArray logs = cnp::asarray(knossos_numbers(3000, k * d, 0.1)).reshape({k, d});
  const cnp::NdArray ls = cnp::asarray(knossos_numbers(4000, k * below, 1)).reshape({k, below});
  const objectives::GmmParameters parameters = {
      cnp::asarray(knossos_numbers(1000, k, 1)),
      cnp::asarray(knossos_numbers(2000, k * d, 1)).reshape({k, d}),
      cnp::concatenate({logs, ls}, 1)};
  const cnp::NdArray x = cnp::asarray(knossos_numbers(0, n * d, 1)).reshape({n, d});
  const cnp::NdArray value = objectives::gmm(parameters, x, {.gamma = 3.1, .m = 7});
  EXPECT_NEAR(numbers(cnp::evaluate(value))[0], 76.08824504948231, 1e-11);
}

void expect_numbers(const LazyTensor& ours, const std::vector<double>& expected) {
  const std::vector<double> values = numbers(cnp::evaluate(ours));
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values[i], expected[i], 5e-9) << i;
}

// Computed in float64 by LibTorch.
TEST(Objectives, SqrlHasTheValuesOfTorch) {
  const cnp::NdArray up = cnp::asarray({{1.0, 2.0}, {3.0, 4.0}});
  expect_numbers(objectives::sqrl(up), {1.3935720166});
  expect_numbers(grad(objectives::sqrl(up), {up})[0],
                 {.2295542049, .0385018769, -1.4445834113, -.1746420238});
  const cnp::NdArray down = cnp::asarray({{-1.0, -2.0}, {-3.0, 4.0}});
  expect_numbers(objectives::sqrl(down), {0.1136250748});
  expect_numbers(grad(objectives::sqrl(down), {down})[0],
                 {-.0077718576, -.0153010020, -.0223504027, .0286942756});
}

TEST(Objectives, ActivationsHaveTheValuesOfTorch) {
  const cnp::NdArray x = cnp::asarray({-0.1, 0.31221, 2.27160, 0.5});
  const cnp::NdArray y = objectives::relu3(x);
  expect_numbers(y, {0, 0.0101442320, 2.27160 - 2.0 / 3, 1.0 / 24});
  expect_numbers(grad(cnp::sum(y), {x})[0], {0, 0.0974750841, 1, 0.25});

  const cnp::NdArray z = cnp::asarray({-2., -1., -.5, 0., .5, 1., 2.});
  const cnp::NdArray gelu = objectives::gelu(z);
  expect_numbers(
      gelu, {-.0455002639, -.1586552539, -.1542687694, 0, .3457312306, .8413447461, 1.9544997361});
  expect_numbers(grad(cnp::sum(gelu), {z})[0], {-.0852318011, -.0833154706, .1325048753, .5,
                                                .8674951247, 1.0833154706, 1.0852318011});
}

// The first numbers for seed 0 are those of the paper's reference program.
TEST(Uniform, IsSplitMix64) {
  EXPECT_EQ(objectives::splitmix64(0, 0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(objectives::splitmix64(0, 1), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(objectives::splitmix64(0, 2), 0x06c45d188009454fu);
}

}  // namespace
}  // namespace composit::test
