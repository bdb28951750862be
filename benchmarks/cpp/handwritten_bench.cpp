// How fast the objectives by hand are, in the form in which jax_objectives.py and
// torch_objectives.py report theirs: `./dev bench handwritten [ROUNDS]`.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "benchmarks/cpp/subjects.h"
#include "benchmarks/report.h"

namespace {

using benchmarks::call;
using benchmarks::Kernel;
using composit::Array;

// Per call; as many calls to a round as take a millisecond or so.
nlohmann::json timed(const Kernel& kernel, const composit::Graph& graph,
                     const std::vector<Array>& inputs, int rounds) {
  const std::vector<Array> outputs = call(kernel, graph, inputs);
  std::vector<const void*> in;
  for (const Array& input : inputs) in.push_back(input.data());
  std::vector<void*> out;
  for (const Array& output : outputs) out.push_back(const_cast<std::byte*>(output.data()));

  const double once = benchmarks::seconds([&] { kernel(in, out); });
  const int calls = std::clamp(static_cast<int>(1e-3 / once), 1, 10000);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round)
    times.push_back(benchmarks::seconds([&] {
                      for (int i = 0; i < calls; ++i) kernel(in, out);
                    }) /
                    calls);
  return {{"min", benchmarks::minimum(times)}, {"median", benchmarks::median(times)}};
}

// The sum of the absolute values of all elements.
double checksum(const std::vector<Array>& arrays) {
  double sum = 0;
  for (const Array& array : arrays)
    for (int64_t i = 0; i < array.type().numel(); ++i)
      sum += std::abs(array.type().dtype == composit::DType::float32
                          ? reinterpret_cast<const float*>(array.data())[i]
                          : reinterpret_cast<const double*>(array.data())[i]);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  nlohmann::json report = nlohmann::json::array();
  for (const auto& [problem, objective, gradient] :
       benchmarks::subjects(benchmarks::measured_sizes()))
    report.push_back(
        nlohmann::json{{"name", problem.name},
                       {"objective", timed(objective, problem.objective, problem.inputs, rounds)},
                       {"gradient", timed(gradient, problem.gradient, problem.inputs, rounds)},
                       {"value", checksum(call(objective, problem.objective, problem.inputs))},
                       {"checksum", checksum(call(gradient, problem.gradient, problem.inputs))}});
  std::cout << report.dump(2) << "\n";
}
