// Reductions of all lengths, and ADBench's objectives with their gradients, as CUDA C++.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <iostream>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/vmap.h"
#include "examples/objectives/activations.h"
#include "examples/objectives/bundle_adjustment.h"
#include "examples/objectives/gmm.h"
#include "examples/objectives/hand_tracking.h"
#include "examples/objectives/lstm.h"
#include "examples/programs/programs.h"
#include "tests/flashlight/cuda/compare.h"

namespace flashlight::cuda {
namespace {

using namespace composit;  // NOLINT
using test::Case;

// The sectors that warps touch, over the fewest that would hold their elements.
void print(const std::vector<Case>& cases, const std::vector<test::Sectors>& sectors) {
  for (size_t i = 0; i < cases.size(); ++i)
    std::cout << cases[i].text << ": " << sectors[i].reads.touched << " sectors read, "
              << sectors[i].reads.ratio() << " times the fewest; " << sectors[i].writes.touched
              << " written, " << sectors[i].writes.ratio() << " times\n";
}

// Threads, warps and blocks fold.
TEST(CudaValues, Reductions) {
  std::vector<Case> cases;
  for (const int64_t length : {1, 31, 64, 100, 2047, 2048, 5000})
    for (const DType dtype : {DType::float32, DType::float64}) {
      const LazyTensor x = input("x", tensor_type(dtype, {3, length}));
      std::vector<double> values(static_cast<size_t>(3 * length));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = 1 + .25 * std::sin(1.7 * static_cast<double>(i));
      const Array array = array_of(x.type(), values);
      const auto add = [&](const std::string& name, const LazyTensor& y) {
        Graph::Parts parts;
        parts.inputs = {x};
        parts.outputs = {y};
        cases.push_back({name + " of " + std::to_string(length), Graph(std::move(parts)), {array}});
      };
      add("sum", sum(x, {1}));
      add("sum of all", sum(x));
      add("largest", amax(x, {1}));
      add("smallest", apply_one("aten::amin", {x, Ints{1}, false}));
      add("sum with an epilogue", exp(sum(x * x, {1}) * (1.0 / static_cast<double>(length))));
      add("argmax", apply_one("aten::argmax", {x, int64_t{1}, false}));
      add("cumsum", apply_one("aten::cumsum", {x, int64_t{1}}));
      add("softmax", apply_one("aten::softmax.int", {x, int64_t{1}}));
      add("sum of columns", sum(x, {0}));
    }
  EXPECT_EQ(test::differences(cases, 16), "");  // thousands of terms in another order
}

// Words of C++, and of kernels, are names of inputs.
TEST(CudaValues, NamesOfInputs) {
  LazyTensors inputs;
  std::vector<Array> values;
  for (const char* name : {"point", "lane", "term", "part", "namespace", "nullptr", "int64_t",
                           "constexpr", "exp", "size_t", "i"}) {
    inputs.push_back(input(name, tensor_type(DType::float32, {2, 100})));
    values.push_back(array_of(inputs[0].type(), std::vector<double>(200, 0.5)));
  }
  LazyTensor product = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) product = product + inputs[i] * inputs[0];
  const std::vector<Case> cases = {
      {"elements", Graph({.inputs = inputs, .outputs = {product}}), values},
      {"sum", Graph({.inputs = inputs, .outputs = {sum(product, {1})}}), values}};
  EXPECT_EQ(test::differences(cases), "");
}

// A function of numbers with branches over the elements of a vector: the branch that each takes,
// within one kernel, and its derivative.
TEST(CudaValues, MappedBranches) {
  const LazyTensor x = input("x", tensor_type(DType::float64, {300}));
  std::vector<double> values(300);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * std::sin(1.7 * static_cast<double>(i));
  const Array array = array_of(x.type(), values);
  const TensorFunction relu3 = [](const LazyTensors& x) {
    const auto zero = [](const LazyTensors& y) { return LazyTensors{0 * y[0]}; };
    const auto cubic = [](const LazyTensors& y) { return LazyTensors{y[0] * y[0] * y[0] / 3}; };
    const auto line = [](const LazyTensors& y) { return LazyTensors{y[0] - 2. / 3}; };
    const auto above = [&](const LazyTensors& y) { return cond(y[0] < 1, cubic, line, y); };
    return cond(x[0] < 0, zero, above, x);
  };
  const LazyTensor y = vmap(relu3)({x})[0];
  std::vector<Case> cases;
  const std::vector<std::pair<std::string, LazyTensor>> results = {
      {"relu3", y}, {"its slope", grad(sum(y), {x})[0]}};
  for (const auto& [name, result] : results) {
    Graph::Parts parts;
    parts.inputs = {x};
    parts.outputs = {result};
    const Graph graph(std::move(parts));
    const std::string text = source_of(graph, {.name = "f", .outline = false}).text;
    const size_t first = text.find("__global__");
    EXPECT_EQ(text.find("__global__", first + 1), std::string::npos) << text;  // one kernel
    EXPECT_EQ(text.find("fl::read"), std::string::npos) << text;
    cases.push_back({name, graph, {array}});
  }
  EXPECT_EQ(test::differences(cases), "");
  const Array received = evaluate(cases[0].graph, {array})[0];
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    EXPECT_DOUBLE_EQ(elements<double>(received)[i], v < 0 ? 0 : v < 1 ? v * v * v / 3 : v - 2. / 3);
  }
}

// Warps and blocks fold complex numbers, too; constants of them stand in the text.
TEST(CudaValues, ComplexNumbers) {
  std::vector<Case> cases;
  for (const int64_t length : {3, 100, 3000})
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      const LazyTensor z = input("z", tensor_type(dtype, {2, length}));
      std::vector<std::complex<double>> values(static_cast<size_t>(2 * length));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] =
            std::polar(1 + .25 * std::sin(1.7 * static_cast<double>(i)), static_cast<double>(i));
      const Array array = array_of(z.type(), values);
      const auto add = [&](const std::string& name, const LazyTensor& y) {
        Graph::Parts parts;
        parts.inputs = {z};
        parts.outputs = {y};
        cases.push_back({name + " of " + std::to_string(length), Graph(std::move(parts)), {array}});
      };
      const LazyTensor turned = constant(array_of(
          tensor_type(dtype, {2, 1}), std::vector<std::complex<double>>{{0, 1}, {.5, -.25}}));
      add("sum", sum(z, {1}));
      add("product of a sum", sum(z * turned, {1}) * turned);
      add("mean of |z|", apply_one("aten::mean", {apply_one("aten::abs", {z})}));
      add("z / exp(conj(z))", z / exp(apply_one("aten::conj", {z})));
      add("parts", apply_one("aten::real", {z}) - 2 * apply_one("aten::imag", {z}));
    }
  EXPECT_EQ(test::differences(cases, 16), "");
}

// Functions of complex numbers where squares, sizes and the numbers themselves are too large, part
// by part: those of C.
TEST(CudaValues, LargeComplexNumbers) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    const bool is_single = dtype == DType::complex64;
    const double most = is_single ? 3e38 : 1.7e308, infinity = INFINITY;
    std::vector<std::complex<double>> values;
    for (const double size : {most, most / 2, is_single ? 2e19 : 2e160, is_single ? 2e9 : 3e17})
      for (const double other : {0.0, 1.5, -size, size / 3})
        for (const std::complex<double> z : {std::complex<double>{size, other}, {other, size}})
          for (const std::complex<double> one : {z, -z}) values.push_back(one);
    for (const double other : {0.0, -0.0, 2.5, infinity, -infinity})
      for (const double size : {infinity, -infinity}) {
        values.emplace_back(size, other);
        values.emplace_back(other, size);
      }
    const LazyTensor z = input("z", tensor_type(dtype, {static_cast<int64_t>(values.size())}));
    const Array array = array_of(z.type(), values);
    for (const std::string name :
         {"sqrt", "log", "log1p", "asin", "acos", "atan", "asinh", "acosh", "atanh", "tanh"}) {
      const LazyTensor result = apply_one("aten::" + name, {z});
      cases.push_back({name + " of " + std::string(composit::name(dtype)),
                       Graph({.inputs = {z},
                              .outputs = {apply_one("aten::real", {result}),
                                          apply_one("aten::imag", {result})}}),
                       {array}});
    }
  }
  EXPECT_EQ(test::differences(cases), "");
}

// Neighbouring threads read and write neighbouring elements: as few sectors as hold them. A
// transpose reads down the columns, where each lane has a sector of its own and uses one of its 8
// floats; only a tile in shared memory would be better. So does a warp that adds up a column of 64
// elements and more, where a thread for each column would be too few threads.
TEST(CudaValues, AccessesAreCoalesced) {
  const LazyTensor x = input("x", tensor_type(DType::float32, {64, 96})),
                   row = input("row", tensor_type(DType::float32, {96}));
  std::vector<double> values(64 * 96, 0.5);
  const Array array = array_of(x.type(), values);
  values.resize(96);
  const Array row_array = array_of(row.type(), values);
  struct Result {
    std::string name;
    LazyTensor value;
    double most = 1;  // sectors read over the fewest
  };
  const LazyTensor turned = apply_one("aten::transpose.int", {x, int64_t{0}, int64_t{1}}) * 2;
  const std::vector<Result> results = {
      {"elementwise", tanh(x) * x + row},
      {"transposed", turned, 8},
      {"softmax", apply_one("aten::softmax.int", {x, int64_t{1}})},
      {"sum of rows", sum(x, {1})},
      {"sum of columns", sum(x, {0}), 8},
      {"rms norm",
       x * apply_one("aten::rsqrt", {apply_one("aten::mean.dim", {x * x, Ints{1}, true})}) * row},
      {"cumsum", apply_one("aten::cumsum", {x, int64_t{0}})}};
  std::vector<Case> cases;
  for (const Result& result : results)
    cases.push_back(
        {result.name, Graph({.inputs = {x, row}, .outputs = {result.value}}), {array, row_array}});
  std::vector<test::Sectors> sectors;
  EXPECT_EQ(test::differences(cases, 4, &sectors), "");
  print(cases, sectors);
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_LE(sectors[i].reads.ratio(), results[i].most) << results[i].name;
    EXPECT_LE(sectors[i].writes.ratio(), 1) << results[i].name;
    EXPECT_GT(sectors[i].reads.touched, 0) << results[i].name;
  }
}

std::vector<Case> objective_cases() {
  std::vector<Case> cases;
  const auto add = [&](const objectives::Problem& problem) {
    cases.push_back({problem.name, problem.objective, problem.inputs});
    cases.push_back({problem.name + ", gradient", problem.gradient, problem.inputs});
  };
  add(objectives::relu3_problem(1000, DType::float64));
  add(objectives::gelu_problem(1000, DType::float64));
  add(objectives::gmm_problem({.d = 3, .k = 5, .n = 100}));
  add(objectives::bundle_adjustment_problem({.cameras = 3, .points = 20, .observations = 50}));
  add(objectives::lstm_problem({.layers = 2, .characters = 5, .hidden = 7}));
  add(objectives::hand_tracking_problem({.vertices = 30, .points = 10}));
  return cases;
}

// nvcc warns of what is named and not used: an index that counts from the end is one call.
TEST(CudaValues, WrappedIndicesAreOneCall) {
  const std::string text =
      source_of(
          objectives::bundle_adjustment_problem({.cameras = 3, .points = 20, .observations = 50})
              .objective,
          {.name = "f", .outline = false})
          .text;
  EXPECT_NE(text.find("fl::wrapped(observed_points["), std::string::npos) << text;
  EXPECT_EQ(text.find("bool condition = observed_"), std::string::npos) << text;
}

TEST(CudaValues, Objectives) {
  const std::vector<Case> cases = objective_cases();
  std::vector<test::Sectors> sectors;
  EXPECT_EQ(test::differences(cases, 4, &sectors), "");
  print(cases, sectors);
}

// Those of examples/generated. The mixtures there have a thousand million accesses, each of which
// the host's machine watches: Objectives has smaller ones.
TEST(CudaValues, GeneratedExamples) {
  std::vector<Case> cases;
  for (const examples::Program& program : examples::programs()) {
    if (program.name.starts_with("gmm")) continue;
    Case one = {program.name, program.graph, {}};
    for (const LazyTensor& x : program.graph.inputs()) {
      std::vector<double> values(static_cast<size_t>(x.numel()));
      for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(1.7 * static_cast<double>(i));
      one.values.push_back(array_of(x.type(), values));
    }
    cases.push_back(std::move(one));
  }
  std::vector<test::Sectors> sectors;
  EXPECT_EQ(test::differences(cases, 16, &sectors),
            "");  // sums of a thousand terms in another order
  print(cases, sectors);
}

TEST(CudaValues, ObjectivesInAGraph) {
  EXPECT_EQ(test::differences(objective_cases(), 4, nullptr, /*captured=*/true), "");
}

}  // namespace
}  // namespace flashlight::cuda
