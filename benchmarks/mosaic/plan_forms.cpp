// Times mosaic's plan of BERT-base at a number of tokens, and the time in which a form of plans
// that was made at two others takes to be bound to it.
//
//   ./dev bench plan_forms [--rounds N] [--layers N]
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "benchmarks/report.h"
#include "composit/nn/layers.h"
#include "composit/nn/nn.h"
#include "flashlight/mosaic/emit.h"
#include "flashlight/mosaic/plan_form.h"

namespace {

using benchmarks::Report;
using composit::input;
using composit::InputKind;
using composit::LazyTensor;
using flashlight::mosaic::Plan;
using flashlight::mosaic::PlanForm;

constexpr int64_t kSize = 768, kInner = 3072, kWords = 30522, kPlaces = 512;

LazyTensor parameter(const std::string& name, const composit::Dims& sizes) {
  return input(name, composit::tensor_type(composit::DType::float32, sizes), InputKind::parameter);
}
composit::nn::Affine linear(const std::string& name, int64_t in, int64_t out) {
  return {parameter(name + ".weight", {out, in}), parameter(name + ".bias", {out})};
}
composit::nn::Affine norm(const std::string& name) {
  return {parameter(name + ".weight", {kSize}), parameter(name + ".bias", {kSize})};
}
composit::nn::EncoderLayer layer(const std::string& name) {
  return {{linear(name + ".query", kSize, kSize), linear(name + ".key", kSize, kSize),
           linear(name + ".value", kSize, kSize), linear(name + ".output", kSize, kSize)},
          {linear(name + ".inner", kSize, kInner), linear(name + ".outer", kInner, kSize)},
          norm(name + ".attention_norm"),
          norm(name + ".feedforward_norm")};
}

// Without values: nothing is computed.
composit::Graph bert_base(int64_t tokens, int layers) {
  const LazyTensor ids = input("ids", composit::tensor_type(composit::DType::int64, {1, tokens})),
                   mask = input("mask",
                                composit::tensor_type(composit::DType::float32, {1, 1, 1, tokens}));
  LazyTensor x = composit::nn::embedding(ids, parameter("words", {kWords, kSize})) +
                 composit::slice(parameter("places", {kPlaces, kSize}), 0, 0, tokens);
  x = composit::nn::layer_norm(x, norm("norm"));
  for (int i = 0; i < layers; ++i)
    x = composit::nn::transformer_encoder_layer(
        x, layer("layer." + std::to_string(i)),
        {.head_size = 64, .attn_mask = mask, .activation = [](const LazyTensor& y) {
           return composit::nn::gelu(y);
         }});
  composit::Graph::Parts parts{.outputs = {x}};
  const composit::Graph all(parts);
  for (const composit::NodePtr& node : all.nodes())
    if (composit::is_input(*node)) parts.inputs.push_back({node, 0});
  return composit::Graph(std::move(parts));
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 20, layers = 12;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--layers") == 0) layers = std::max(1, std::atoi(argv[i + 1]));
  }
  Report report("plan_forms");
  const std::vector<composit::Graph> shown = {bert_base(17, layers), bert_base(250, layers)};
  const composit::Graph graph = bert_base(100, layers);
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
