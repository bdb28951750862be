// Times BERT-base with sizes as parameters of its C++ against the C++ of each size.
//
//   ./dev bench sized_cpp [--rounds N] [--layers N]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "benchmarks/mosaic/bert_graph.h"
#include "benchmarks/mosaic/random_values.h"
#include "benchmarks/report.h"
#include "flashlight/cpp/backend.h"

namespace {

using benchmarks::Report;
using composit::Array;
using composit::Compiled;

auto lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

int main(int argc, char** argv) {
  const auto [rounds, layers] = benchmarks::bert_options(argc, argv);
  Report report("sized_cpp");
  std::vector<composit::SizedGraph> shown;
  for (const int64_t tokens : {8, 80, 152, 224, 296, 368, 440, 512})
    shown.push_back({benchmarks::bert_base(tokens, layers), {{"tokens", tokens}}});
  std::shared_ptr<composit::SizedCode> sized;
  std::printf("ready in %.2f s\n", benchmarks::seconds([&] {
                sized = flashlight::cpp::backend().compile_sized(shown, {.name = "bert"});
              }));
  double worst = 0, longest = 0, error = 0;
  for (const int64_t tokens : {16, 37, 128, 250, 384, 511}) {
    const composit::Graph graph = benchmarks::bert_base(tokens, layers);
    const std::vector<Array> values = benchmarks::random_values(graph);
    Compiled open;
    const double new_size = benchmarks::seconds([&] { open = sized->at(graph); });
    const Compiled fixed = flashlight::cpp::compile(graph, {.name = "bert"});
    error = std::max(error, benchmarks::difference(open(values)[0], fixed(values)[0]));
    std::vector<double> of_open, of_fixed;
    for (int round = 0; round < rounds; ++round) {
      of_fixed.push_back(benchmarks::seconds([&] { fixed(values); }));
      of_open.push_back(benchmarks::seconds([&] { open(values); }));
    }
    const double ratio = benchmarks::median(of_open) / benchmarks::median(of_fixed);
    std::printf("%4d tokens: new size %.1f ms, %.1f ms, %.3f of static\n", static_cast<int>(tokens),
                1e3 * new_size, 1e3 * benchmarks::median(of_open), ratio);
    worst = std::max(worst, ratio);
    longest = std::max(longest, static_cast<double>(lines_of(sized->source())) /
                                    static_cast<double>(lines_of(fixed->source())));
  }
  report.target("texts that were compiled", "<=", 1, static_cast<double>(sized->compilations()));
  report.target("lines ÷ static", "<=", 1.3, longest);
  report.target("time ÷ static, largest", "<=", 1.10, worst);
  report.target("difference from static", "<=", 0, error);
  return report.finish();
}
