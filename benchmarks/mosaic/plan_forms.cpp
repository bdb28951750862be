// Times mosaic's plan of BERT-base at a number of tokens, and the time in which a form of plans
// that was made at two others takes to be bound to it.
//
//   ./dev bench plan_forms [--rounds N] [--layers N]
#include <algorithm>

#include "benchmarks/mosaic/bert_graph.h"
#include "benchmarks/report.h"
#include "flashlight/mosaic/emit.h"
#include "flashlight/mosaic/plan_form.h"

namespace {

using benchmarks::Report;
using flashlight::mosaic::Plan;
using flashlight::mosaic::PlanForm;

}  // namespace

int main(int argc, char** argv) {
  const auto [rounds, layers] = benchmarks::bert_options(argc, argv);
  Report report("plan_forms");
  const std::vector<composit::Graph> shown = {benchmarks::bert_base(17, layers),
                                              benchmarks::bert_base(250, layers)};
  const composit::Graph graph = benchmarks::bert_base(100, layers);
  PlanForm form;
  report.raw(
      "bert_base", "form of two",
      {benchmarks::seconds([&] { form = flashlight::mosaic::form_of(shown, {}, {"tokens"}); })});
  std::vector<double> anew, forms, bound, kernels, emission;
  for (int round = 0; round < rounds; ++round) {
    Plan plan;
    PlanForm one;
    anew.push_back(benchmarks::seconds([&] { plan = flashlight::mosaic::plan_of(graph); }));
    forms.push_back(benchmarks::seconds([&] {
      one = flashlight::mosaic::bind_sizes(form, {{"tokens", 100}});
    }));
    kernels.push_back(
        benchmarks::seconds([&] { plan = flashlight::mosaic::plan_of(std::move(one)); }));
    bound.push_back(forms.back() + kernels.back());
    emission.push_back(benchmarks::seconds([&] { flashlight::mosaic::emit(plan, "bert"); }));
  }
  report.raw("bert_base", "plan anew", anew);
  report.raw("bert_base", "bind sizes", forms);
  report.raw("bert_base", "kernels and buffers", kernels);
  report.raw("bert_base", "emission", emission);
  report.target("seconds to bind a plan of BERT-base", "<=", 0.01, benchmarks::median(bound));
  report.target("plan bound ÷ planned anew, bert_base", "<=", 0.25,
                benchmarks::median_ratio(bound, anew));
  return report.finish();
}
