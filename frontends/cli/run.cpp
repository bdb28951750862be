#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <ostream>

#include "composit/io/saved_capture.h"
#include "composit/ops/native.h"
#include "frontends/cli/commands.h"
#include "frontends/cli/example.h"

namespace cli {
namespace {

using composit::Array;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The largest difference, in units of the largest element.
double difference(const Array& ours, const Array& expected) {
  const std::vector<double> x = composit::elements<double>(ours),
                            y = composit::elements<double>(expected);
  double most = 0, largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(x[i] - y[i]));
    largest = std::max(largest, std::abs(y[i]));
  }
  return largest > 0 ? most / largest : most;
}

}  // namespace

int run(const BackendArguments& arguments, std::ostream& out) {
  const composit::SavedCapture capture = load_to_compile(arguments.folder);
  const std::string name = std::filesystem::path(arguments.folder).stem();
  const auto start = std::chrono::steady_clock::now();
  composit::CompileOptions options = compile_options(capture, arguments.options, name);
  options.may_prepare = true;
  const composit::Compiled made = arguments.backend->compile(capture.graph, options);
  out << "compiled in " << seconds_since(start) << " s\n";
  const std::vector<Array> inputs = example_of(capture);
  const composit::Compiled compiled(made->prepare(inputs));
  std::vector<Array> results;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    results = compiled(inputs);
    best = std::min(best, seconds_since(begin));
  }
  out << "one run: " << best * 1e3 << " ms\n";
  double largest = 0;
  for (size_t i = 0; i < capture.example_outputs.size(); ++i) {
    const double one = difference(results[i], capture.example_outputs[i]);
    out << "result " << i << ": largest difference " << one << '\n';
    largest = std::max(largest, one);
  }
  return largest < 1e-3 ? 0 : 1;
}

}  // namespace cli
