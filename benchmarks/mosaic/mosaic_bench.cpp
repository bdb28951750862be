// The mosaic backend, as `./dev bench mosaic` measures it.
//
//   bench_mosaic --serve CAPTURE THREADS    compiles a saved capture and does as serve.h says
//   bench_mosaic --machine THREADS          an answer for each line: what the machine can do now
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "benchmarks/mosaic/machine.h"
#include "benchmarks/mosaic/serve.h"
#include "benchmarks/report.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "flashlight/mosaic/backend.h"

namespace {

using composit::Array;
using flashlight::mosaic::Compiled;

// By input of a graph; undefined where the other list has a value.
struct Values {
  std::vector<Array> weights, inputs;
};

Values values_of(const composit::SavedCapture& capture) {
  Values values;
  size_t next = 0;
  for (const composit::LazyTensor& input : capture.graph.inputs()) {
    const bool given = input_kind(*input.node) == composit::InputKind::user_input;
    values.inputs.push_back(given ? capture.example_inputs.at(next++) : Array());
    values.weights.push_back(given ? Array() : capture.weights.at(input_name(*input.node)));
  }
  return values;
}

// A capture is loaded when its weights are in memory, not when their file is mapped.
void touch(const std::vector<Array>& arrays) {
  unsigned sum = 0;
  for (const Array& array : arrays)
    for (int64_t i = 0; array.defined() && i < array.type().nbytes(); i += 4096)
      sum += static_cast<unsigned>(array.data()[i]);
  volatile unsigned sink = sum;
  static_cast<void>(sink);
}

nlohmann::json about(const Compiled& compiled, double compile_seconds) {
  const flashlight::mosaic::Plan& plan = compiled.plan();
  return {{"compile_seconds", compile_seconds},
          {"kernels", plan.run.size()},
          {"arena_bytes", plan.arena_bytes},
          {"least_arena_bytes", plan.least_bytes},
          {"prepared_bytes", plan.prepared_bytes}};
}

void serve_capture(const std::string& folder, int threads) {
  const composit::SavedCapture capture = composit::load(folder);
  const Values values = values_of(capture);
  touch(values.weights);
  std::vector<Compiled> made;
  const double compile_seconds = benchmarks::seconds([&] {
    made.push_back(flashlight::mosaic::compile(capture.graph, values.weights,
                                               {.name = "model", .threads = threads}));
  });
  const Compiled& compiled = made[0];
  std::vector<Array> results = compiled(values.inputs);
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const Array& input : values.inputs) from.push_back(input.defined() ? input.data() : nullptr);
  for (const Array& result : results) to.push_back(const_cast<std::byte*>(result.data()));
  benchmarks::serve({.about = about(compiled, compile_seconds),
                     .run = [&] { compiled.run(from, to); },
                     .results = [&] { return compiled(values.inputs); }});
}

void serve_machine(int threads) {
  for (std::string line; std::getline(std::cin, line);) {
    const benchmarks::Machine machine = benchmarks::look_at_machine(threads);
    const nlohmann::json answer = {
        {"fma", machine.fma}, {"copy", machine.copy}, {"ping_pong", machine.ping_pong}};
    std::cout << answer.dump() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  try {
    if (command == "--serve" && argc == 4) return serve_capture(argv[2], std::atoi(argv[3])), 0;
    if (command == "--machine" && argc == 3) return serve_machine(std::atoi(argv[2])), 0;
  } catch (const composit::UserError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fputs("usage: bench_mosaic --serve CAPTURE THREADS | --machine THREADS\n", stderr);
  return 2;
}
