// The objectives as the cpp backend compiles them, beside the same by hand.
//
//   bench_cpp --serve           does what benchmarks/cpp.py asks for: `./dev bench cpp`
//   bench_cpp [ROUNDS [NAME]]   a line for each problem of that name: ratios of minima; below 1 the
//                               generated code is faster
//
// Every result is compared.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "benchmarks/cpp/subjects.h"
#include "benchmarks/report.h"
#include "composit/ops/native.h"
#include "flashlight/cpp/backend.h"

namespace {

using composit::Array;

struct Side {
  std::vector<Array> outputs;
  std::function<void()> run;
  std::vector<double> times = {};
};

std::vector<const void*> pointers(const std::vector<Array>& arrays) {
  std::vector<const void*> list;
  for (const Array& array : arrays) list.push_back(array.data());
  return list;
}
std::vector<void*> places(const std::vector<Array>& arrays) {
  std::vector<void*> list;
  for (const Array& array : arrays) list.push_back(const_cast<std::byte*>(array.data()));
  return list;
}

// The largest difference, in units of the largest element.
double difference(const std::vector<Array>& ours, const std::vector<Array>& expected) {
  double most = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    const auto x = composit::elements<double>(ours[k]), y = composit::elements<double>(expected[k]);
    double largest = 0, apart = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::abs(y[i]));
      apart = std::max(apart, std::abs(x[i] - y[i]));
    }
    most = std::max(most, largest > 0 ? apart / largest : apart);
  }
  return most;
}

double checksum(const std::vector<Array>& arrays) {
  double sum = 0;
  for (const Array& array : arrays)
    for (double x : composit::elements<double>(array)) sum += std::abs(x);
  return sum;
}

// The time of a call, of which a round makes as many as take about a millisecond.
double seconds_of(const Side& side) {
  const double once = benchmarks::seconds(side.run);
  const int calls = std::clamp(static_cast<int>(1e-3 / once), 1, 10000);
  const double all = benchmarks::seconds([&] {
    for (int i = 0; i < calls; ++i) side.run();
  });
  return all / calls;
}

void measure(std::vector<Side*> sides, int rounds) {
  for (int round = 0; round <= rounds; ++round)
    for (Side* side : sides) {
      const double seconds = seconds_of(*side);
      if (round > 0) side->times.push_back(seconds);  // the first one warms up
    }
}

Side compiled(const composit::Graph& graph, const std::vector<Array>& inputs,
              const std::string& name) {
  const auto program = flashlight::cpp::compile(graph, {.name = name});
  Side side = {program(inputs), {}};
  const std::vector<const void*> from = pointers(inputs);
  const std::vector<void*> to = places(side.outputs);
  side.run = [program, inputs, in = std::vector<composit::InputBuffer>(from.begin(), from.end()),
              out = std::vector<composit::Buffer>(to.begin(), to.end())] {
    program->run(in, out, nullptr);
  };
  return side;
}

Side by_hand(const benchmarks::Kernel& kernel, const composit::Graph& graph,
             const std::vector<Array>& inputs) {
  Side side = {benchmarks::call(kernel, graph, inputs), {}};
  side.run = [kernel, inputs, in = pointers(inputs), out = places(side.outputs)] {
    kernel(in, out);
  };
  return side;
}

// Objective and gradient, by whom they are made.
using Sides = std::map<std::string, std::array<Side, 2>>;
const char* const kOurs = "cpp";
const char* const kByHand = "by hand";

Sides sides_of(const benchmarks::Subject& subject) {
  const auto& [problem, objective, gradient] = subject;
  return {{kOurs,
           {compiled(problem.objective, problem.inputs, problem.name),
            compiled(problem.gradient, problem.inputs, problem.name + "_gradient")}},
          {kByHand,
           {by_hand(objective, problem.objective, problem.inputs),
            by_hand(gradient, problem.gradient, problem.inputs)}}};
}

void report(const benchmarks::Subject& subject, int rounds) {
  Sides sides = sides_of(subject);
  auto& [value, derivative] = sides[kOurs];
  auto& [value_by_hand, derivative_by_hand] = sides[kByHand];
  measure({&value, &value_by_hand, &derivative, &derivative_by_hand}, rounds);
  const auto least = [](const Side& side) { return benchmarks::minimum(side.times); };
  std::printf("%-34s %10.3f %10.2f %10.3f %10.2f %10.2f %10.1e %10.1e\n",
              subject.problem.name.c_str(), least(value) * 1e3, least(value) / least(value_by_hand),
              least(derivative) * 1e3, least(derivative) / least(derivative_by_hand),
              least(derivative) / least(value), difference(value.outputs, value_by_hand.outputs),
              difference(derivative.outputs, derivative_by_hand.outputs));
  std::fflush(stdout);
}

// The protocol of benchmarks/cpp/problems.py, serve().
void serve() {
  Sides sides;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space), argument = line.substr(space + 1);
    nlohmann::json answer;
    if (command == "open") {
      sides.clear();
      for (const benchmarks::Subject& subject : benchmarks::subjects(benchmarks::measured_sizes()))
        if (subject.problem.name == argument) sides = sides_of(subject);
      for (const auto& [who, both] : sides)
        answer[who] = {checksum(both[0].outputs), checksum(both[1].outputs)};
      answer["difference"] = {difference(sides[kOurs][0].outputs, sides[kByHand][0].outputs),
                              difference(sides[kOurs][1].outputs, sides[kByHand][1].outputs)};
    } else {
      const auto which = nlohmann::json::parse(argument);
      answer = seconds_of(sides.at(which[0]).at(which[1]));
    }
    std::cout << answer.dump() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1] == std::string("--serve")) return serve(), 0;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::string only = argc > 2 ? argv[2] : "";
  std::printf("%-34s %10s %10s %10s %10s %10s %10s %10s\n", "", "value ms", "/ by hand", "grad. ms",
              "/ by hand", "/ value", "diff.", "diff.");
  for (const benchmarks::Subject& subject : benchmarks::subjects(benchmarks::measured_sizes()))
    if (subject.problem.name.find(only) != std::string::npos) report(subject, rounds);
}
