// The mosaic backend, as `./dev bench mosaic` measures it.
//
//   bench_mosaic --serve CAPTURE THREADS [PRODUCTS [VALUES]]
//   bench_mosaic --kernels CAPTURE THREADS [PRODUCTS [VALUES]]
//   bench_mosaic --machine THREADS
//   bench_mosaic --memory CAPTURE
//
// --serve compiles a saved capture with these options, and does as serve.h says. --kernels prints
// the time of each kernel, and what the machine can do. --machine answers each line of its input by
// what the machine can do now. --memory prints the bytes that a model takes which was compiled and
// called, when its capture is released.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/mosaic/machine.h"
#include "benchmarks/mosaic/serve.h"
#include "benchmarks/report.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "flashlight/backends/profile.h"
#include "flashlight/mosaic/backend.h"
#include "flashlight/package/backend.h"
#include "flashlight/runtime/random.hpp"

namespace {

using composit::Array;
using composit::Compiled;

// By input of a graph; undefined where the other list has a value. What is written is in both.
struct Values {
  std::vector<Array> weights, inputs;
};

Values values_of(const composit::SavedCapture& capture) {
  Values values;
  std::set<std::string> written;
  for (const composit::Mutation& mutation : capture.graph.mutations())
    written.insert(input_name(*mutation.target.node));
  size_t next = 0;
  for (const composit::LazyTensor& input : capture.graph.inputs()) {
    const bool given = input_kind(*input.node) == composit::InputKind::user_input;
    const Array value =
        given ? capture.example_inputs.at(next++) : capture.weights.at(input_name(*input.node));
    values.inputs.push_back(given || written.contains(input_name(*input.node)) ? value : Array());
    values.weights.push_back(given ? Array() : value);
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
  const flashlight::mosaic::Plan& plan = flashlight::mosaic::plan_of(*compiled);
  return {{"compile_seconds", compile_seconds},
          {"kernels", plan.run.size()},
          {"arena_bytes", plan.arena_bytes},
          {"least_arena_bytes", plan.least_bytes},
          {"prepared_bytes", plan.prepared_bytes}};
}

// Calls in a row. What one of them writes of its inputs is what the next one reads: it is written
// in the same place, or copied to it, as by flashlight::CompiledGraph.
class Calls {
 public:
  Calls(const composit::Graph& graph, const Compiled& compiled, const std::vector<Array>& inputs)
      : compiled_(compiled), results_(compiled(inputs)) {
    for (const Array& input : inputs) from_.emplace_back(input.defined() ? input.data() : nullptr);
    for (const Array& result : results_) to_.emplace_back(const_cast<std::byte*>(result.data()));
    for (const composit::Mutation& mutation : graph.mutations()) {
      const auto is_target = [&](const auto& input) { return input == mutation.target; };
      const auto found = std::find_if(graph.inputs().begin(), graph.inputs().end(), is_target);
      const auto target = static_cast<size_t>(found - graph.inputs().begin());
      states_.push_back(Array::copy_of(inputs[target].type(), inputs[target].data()));
      from_[target] = states_.back().data();
    }
    for (size_t i = 0; i < states_.size(); ++i) {
      void*& to = to_[to_.size() - states_.size() + i].data;
      auto* const state = const_cast<std::byte*>(states_[i].data());
      if (compiled->may_update(to_.size() - states_.size() + i))
        to = state;
      else
        copied_.push_back({state, to, static_cast<size_t>(states_[i].type().nbytes())});
    }
  }
  void run() {
    compiled_->run(from_, to_, &generator_);
    copy();
  }
  fl::Profile profile() {
    fl::Profile profile = compiled_->profile(from_, to_, &generator_);
    copy();
    return profile;
  }

 private:
  void copy() {
    for (const Copied& one : copied_) std::memcpy(one.state, one.value, one.bytes);
  }

  const Compiled& compiled_;
  struct Copied {
    void* state;
    const void* value;
    size_t bytes;
  };
  std::vector<Array> results_, states_;  // by mutation: the input that it is of
  std::vector<composit::InputBuffer> from_;
  std::vector<composit::Buffer> to_;
  std::vector<Copied> copied_;
  fl::Generator generator_ = fl::Generator(flashlight::package::kDefaultSeed);
};

// The results of a call on the capture's values.
benchmarks::Results results_of(const composit::SavedCapture& capture, const Compiled& compiled,
                               const std::vector<Array>& inputs) {
  std::vector<Array> outputs = compiled(inputs);
  const std::vector<composit::Mutation>& mutations = capture.graph.mutations();
  benchmarks::Results results;
  for (size_t i = mutations.size(); i-- > 0; outputs.pop_back())
    results.emplace(input_name(*mutations[i].target.node), outputs.back());
  results.merge(benchmarks::named_outputs(outputs));
  return results;
}

// Of THREADS [PRODUCTS [VALUES]].
composit::Options options_of(const std::vector<std::string>& words) {
  return {{"threads", std::stoi(words[0])},
          {"products", words.size() > 1 ? words[1] : "float32"},
          {"values", words.size() > 2 ? words[2] : "float32"}};
}

void serve_capture(const std::string& folder, const composit::Options& options) {
  const composit::SavedCapture capture = composit::load(folder);
  const Values values = values_of(capture);
  touch(values.weights);
  std::vector<Compiled> made;
  const double compile_seconds = benchmarks::seconds([&] {
    made.emplace_back(
        flashlight::mosaic::backend()
            .compile(capture.graph,
                     {.name = "model", .options = options, .may_prepare = true, .may_update = true})
            ->prepare(values.weights));
  });
  const Compiled& compiled = made[0];
  Calls calls(capture.graph, compiled, values.inputs);
  benchmarks::serve({.about = about(compiled, compile_seconds),
                     .run = [&] { calls.run(); },
                     .results = [&] { return results_of(capture, compiled, values.inputs); }});
}

// Memory of this process, without what was freed: the allocator gives that back first.
int64_t resident_bytes() {
  malloc_trim(0);
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t peak_bytes() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

int64_t bytes_of(const std::vector<Array>& arrays) {
  int64_t bytes = 0;
  for (const Array& array : arrays) bytes += array.defined() ? array.type().nbytes() : 0;
  return bytes;
}

// A model that is called once; its weights are released. Returns their bytes.
int64_t compile_and_call(const std::string& folder, Compiled& compiled) {
  const composit::SavedCapture capture = composit::load(folder);
  const Values values = values_of(capture);
  touch(values.weights);
  compiled = flashlight::mosaic::backend()
                 .compile(capture.graph, {.name = "model", .may_prepare = true})
                 ->prepare(values.weights);
  compiled(values.inputs);
  return bytes_of(values.weights);
}

// The program, the toolchain and threads keep memory from their first use, which is no model's.
void compile_something() {
  const composit::Graph graph = composit::parse(R"(graph(%x: float32[64, 64]) {
    %y: float32[64, 64] = aten::mm(%x, %x)
    return %y
  })");
  const std::vector<float> x(64 * 64);
  flashlight::mosaic::backend().compile(graph)(
      {Array::copy_of(graph.inputs()[0].type(), x.data())});
}

void measure_memory(const std::string& folder) {
  compile_something();
  const int64_t before = resident_bytes();
  Compiled compiled;
  const int64_t weights = compile_and_call(folder, compiled);
  const flashlight::mosaic::Plan& plan = flashlight::mosaic::plan_of(*compiled);
  const nlohmann::json bytes = {{"weights", weights},
                                {"arena", plan.arena_bytes},
                                {"prepared", plan.prepared_bytes},
                                {"resident", resident_bytes() - before},
                                {"peak", peak_bytes() - before}};
  std::cout << bytes.dump() << std::endl;
}

nlohmann::json json_of(const benchmarks::Machine& machine) {
  return {{"fma", machine.fma}, {"copy", machine.copy}, {"ping_pong", machine.ping_pong}};
}

// Each kernel's least time in several calls: it is free of what interrupts a single call.
void measure_kernels(const std::string& folder, int threads, const composit::Options& options) {
  constexpr int kCalls = 15;
  const composit::SavedCapture capture = composit::load(folder);
  const Values values = values_of(capture);
  const Compiled compiled =
      flashlight::mosaic::backend()
          .compile(capture.graph,
                   {.name = "model", .options = options, .may_prepare = true, .may_update = true})
          ->prepare(values.weights);
  Calls calls(capture.graph, compiled, values.inputs);

  nlohmann::json kernels, machine = {json_of(benchmarks::look_at_machine(threads))};
  for (int call = 0; call < kCalls; ++call) {
    const fl::Profile profile = calls.profile();
    for (size_t i = 0; i < profile.size(); ++i) {
      nlohmann::json& kernel = kernels[i];
      if (call == 0)
        kernel = {{"name", profile[i].name},
                  {"operations", profile[i].operations},
                  {"bytes", profile[i].bytes}};
      const int64_t time = profile[i].end - profile[i].start;
      kernel["nanoseconds"] = std::min(kernel.value("nanoseconds", INT64_MAX), time);
    }
  }
  machine.push_back(json_of(benchmarks::look_at_machine(threads)));
  const nlohmann::json answer = {{"machine", machine}, {"kernels", kernels}};
  std::cout << answer.dump() << std::endl;
}

void serve_machine(int threads) {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << json_of(benchmarks::look_at_machine(threads)).dump() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  try {
    const bool has_options = argc >= 4 && argc <= 6;
    const std::vector<std::string> words(argv + std::min(argc, 3), argv + argc);
    if (command == "--serve" && has_options) return serve_capture(argv[2], options_of(words)), 0;
    if (command == "--kernels" && has_options)
      return measure_kernels(argv[2], std::atoi(argv[3]), options_of(words)), 0;
    if (command == "--memory" && argc == 3) return measure_memory(argv[2]), 0;
    if (command == "--machine" && argc == 3) return serve_machine(std::atoi(argv[2])), 0;
  } catch (const composit::UserError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fputs(
      "usage: bench_mosaic --serve CAPTURE THREADS [PRODUCTS [VALUES]] | --machine THREADS | "
      "--kernels CAPTURE THREADS [PRODUCTS [VALUES]] | --memory CAPTURE\n",
      stderr);
  return 2;
}
