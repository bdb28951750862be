// One compiled text of BERT-base for all numbers of tokens, beside the program of each number.
//
//   ./dev bench sized [--rounds N] [--layers N]
#include "flashlight/mosaic/sized.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/mosaic/bert_graph.h"
#include "benchmarks/mosaic/random_values.h"
#include "benchmarks/report.h"
#include "flashlight/mosaic/backend.h"

namespace {

using benchmarks::Report;
using composit::Array;
using composit::Compiled;

}  // namespace

int main(int argc, char** argv) {
  const auto [rounds, layers] = benchmarks::bert_options(argc, argv);
  Report report("sized");
  std::vector<composit::Graph> shown;
  for (const int64_t tokens : {8, 80, 152, 224, 296, 368, 440, 512})
    shown.push_back(benchmarks::bert_base(tokens, layers));
  std::shared_ptr<composit::SizedCode> sized;
  const flashlight::mosaic::PlanOptions options = {.name = "bert"};
  std::printf("ready in %.2f s\n", benchmarks::seconds([&] {
                sized = flashlight::mosaic::sized_code(shown, options, 2, {});
              }));
  std::vector<double> first;
  double product = 1, worst = 0;
  int count = 0, preparations = 0;
  std::shared_ptr<const composit::Code> before;
  for (const int64_t tokens : {16, 37, 77, 128, 250, 384, 511}) {
    const composit::Graph graph = benchmarks::bert_base(tokens, layers);
    const std::vector<Array> values = benchmarks::random_values(graph);
    Compiled one;
    const size_t texts = sized->compilations();
    const double new_size = benchmarks::seconds([&] { one = sized->at(graph); });
    if (texts == sized->compilations()) first.push_back(new_size);
    std::shared_ptr<const composit::Code> code = before ? one->prepare_like({before}) : nullptr;
    if (code == nullptr) {
      code = one->prepare(values);
      ++preparations;
    }
    before = code;
    const Compiled open(code),
        fixed(flashlight::mosaic::compile(
                  {flashlight::mosaic::plan_of(graph, {.name = "bert" + std::to_string(tokens)})},
                  2)[0]
                  ->prepare(values));
    const double error = benchmarks::difference(open(values)[0], fixed(values)[0]);
    std::vector<double> of_open, of_fixed;
    for (int round = 0; round < rounds; ++round) {
      of_fixed.push_back(benchmarks::seconds([&] { fixed(values); }));
      of_open.push_back(benchmarks::seconds([&] { open(values); }));
    }
    const double ratio = benchmarks::median(of_open) / benchmarks::median(of_fixed);
    std::printf("%4d tokens: new size %.1f ms%s, %.2f ms, %.3f of static (min %.3f), error %.1e\n",
                static_cast<int>(tokens), 1e3 * new_size,
                texts == sized->compilations() ? "" : " (compiled)",
                1e3 * benchmarks::median(of_open), ratio,
                *std::min_element(of_open.begin(), of_open.end()) /
                    *std::min_element(of_fixed.begin(), of_fixed.end()),
                error);
    product *= ratio;
    worst = std::max(worst, ratio);
    ++count;
  }
  std::printf("texts: %zu; weights were packed %d times\n", sized->compilations(), preparations);
  if (!first.empty())
    report.target("seconds of planning for a new size", "<=", 0.03, benchmarks::median(first));
  report.target("time ÷ static, geometric mean", "<=", 1.05, std::pow(product, 1.0 / count));
  report.target("time ÷ static, largest", "<=", 1.10, worst);
  return report.finish();
}
