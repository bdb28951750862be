// ADBench's objectives and activations in Knossos' language, beside the same in composit::numpy.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "composit/eval/evaluate.h"
#include "composit/ops/native.h"
#include "examples/objectives/activations.h"
#include "examples/objectives/gmm.h"
#include "examples/objectives/lstm.h"
#include "flashlight/backends/registry.h"
#include "tests/frontends/ks/run_program.h"

namespace flashlight::ks::test {
namespace {

// Read, printed, and read again.
Program read(const std::string& file) {
  std::ifstream stream(std::string(FLASHLIGHT_SOURCE_DIR) + "/examples/ks/" + file);
  return parse(print(parse(std::string(std::istreambuf_iterator<char>(stream), {}), file)), file);
}

Numbers floats(const composit::Array& array) { return composit::elements<double>(array); }

void expect_equal(const Numbers& received, const Numbers& expected, const std::string& name) {
  ASSERT_EQ(received.size(), expected.size()) << name;
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(received[i], expected[i], 1e-12 * (1 + std::abs(expected[i]))) << name << ' ' << i;
}

struct Example {
  std::string name, file;
  objectives::Problem problem;          // its inputs are all Floats of the function's argument
  std::vector<ArgumentLeaf> more = {};  // further parameters, which are known
  std::vector<double> numbers = {};     // Floats among them
};
void PrintTo(const Example& example, std::ostream* out) { *out << example.name; }

// The results of a function of the example's program: as a backend computes them, or as defined.
std::vector<Numbers> results(const Example& one, const std::string& function,
                             const std::vector<composit::Array>& cotangents,
                             const std::string& backend = "") {
  std::vector<ArgumentLeaf> leaves;
  std::vector<composit::Array> arrays = one.problem.inputs;
  for (const composit::Array& input : arrays) leaves.emplace_back(input.type());
  for (const double& number : one.numbers) {
    leaves.emplace_back(composit::tensor_type(composit::DType::float64, {}));
    arrays.push_back(
        composit::array_of(std::get<composit::Type>(leaves.back()), std::vector<double>{number}));
  }
  leaves.insert(leaves.end(), one.more.begin(), one.more.end());
  for (const composit::Array& cotangent : cotangents) {
    leaves.emplace_back(cotangent.type());
    arrays.push_back(cotangent);
  }
  const composit::Graph graph =
      graph_of(read(one.file), function, leaves, {.floating = composit::DType::float64});
  std::vector<Numbers> all;
  for (const composit::Array& array :
       backend.empty() ? composit::evaluate(graph, arrays)
                       : backend_named(backend).compile(graph, {.name = one.name})(arrays))
    all.push_back(floats(array));
  return all;
}

class KsAgainstNumpy : public testing::TestWithParam<Example> {};

TEST_P(KsAgainstNumpy, HasItsValuesAndDerivatives) {
  const Example& one = GetParam();
  const auto value = composit::evaluate(one.problem.objective, one.problem.inputs);
  expect_equal(results(one, one.name, {})[0], floats(value[0]), "value");

  const composit::Array dy = composit::array_of(composit::tensor_type(composit::DType::float64, {}),
                                                std::vector<double>{1});
  const auto gradients = composit::evaluate(one.problem.gradient, one.problem.inputs);
  const std::vector<Numbers> ours = results(one, "[rev " + one.name + "]", {dy});
  for (size_t i = 1; i < gradients.size(); ++i)  // the first is the value
    expect_equal(ours.at(i - 1), floats(gradients[i]), "gradient " + std::to_string(i));

  for (const std::string backend : {"cpp", "mosaic"}) {
    expect_equal(results(one, one.name, {}, backend)[0], floats(value[0]), backend + ", value");
    const std::vector<Numbers> compiled = results(one, "[rev " + one.name + "]", {dy}, backend);
    ASSERT_EQ(compiled.size(), ours.size());
    for (size_t i = 0; i < ours.size(); ++i)
      expect_equal(compiled[i], ours[i], backend + ", gradient " + std::to_string(i));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Objectives, KsAgainstNumpy,
    testing::Values(
        Example{
            .name = "gmm",
            .file = "gmm.ks",
            .problem = objectives::gmm_problem({.d = 3, .k = 4, .n = 7}, composit::DType::float64,
                                               {.gamma = 1.5, .m = 2}),
            .more = {int64_t{2}},
            .numbers = {1.5}},
        Example{.name = "lstm",
                .file = "lstm.ks",
                .problem = objectives::lstm_problem({.layers = 2, .characters = 6, .hidden = 5})}),
    [](const auto& one) { return one.param.name; });

TEST(KsAgainstNumpy, Relu3) {
  const objectives::Problem problem = objectives::relu3_problem(100, composit::DType::float64);
  const std::string text = R"(
(def vrelu3 (Vec Float) (v : Vec Float) (map (lam (x : Float) (relu3 x)) v)))";
  Program program = read("relu3.ks");
  for (const Declaration& one : parse(text).declarations) program.declarations.push_back(one);
  const composit::Type type = problem.inputs[0].type();
  const GraphOptions options = {.floating = composit::DType::float64};
  const auto ours =
      composit::evaluate(graph_of(program, "vrelu3", {type}, options), {problem.inputs[0]});
  expect_equal(floats(ours[0]), floats(composit::evaluate(problem.objective, problem.inputs)[0]),
               "value");
  const auto slopes =
      composit::evaluate(graph_of(program, "[rev vrelu3]", {type, type}, options), problem.inputs);
  expect_equal(floats(slopes[0]), floats(composit::evaluate(problem.gradient, problem.inputs)[0]),
               "derivative");
}

}  // namespace
}  // namespace flashlight::ks::test
