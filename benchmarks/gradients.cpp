// Gradients of whole models, by composit/ad and by autograd, on the same values: `./dev bench
// gradients`.
//
// Options: --rounds N (default 5), --only NAME, --nodes (only build the gradient and count).
#include <c10/core/GradMode.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

#include "benchmarks/report.h"
#include "composit/ir/graph.h"
#include "composit/passes/pass.h"
#include "examples/zoo/zoo.h"
#include "flashlight/gradient.h"
#include "flashlight/trace.h"

namespace {

using benchmarks::Report;
using benchmarks::seconds;
using zoo::Subject;
using zoo::Tensors;

size_t operations(const composit::Graph& graph) {
  size_t count = 0;
  for (const composit::NodePtr& node : graph.nodes()) count += !composit::is_input(*node);
  return count;
}

// Number of nodes by operation, most frequent first.
void print_operations(const composit::Graph& graph) {
  std::map<std::string, size_t> counts;
  for (const composit::NodePtr& node : graph.nodes()) ++counts[std::string(node->op().str())];
  for (const composit::NodePtr& node : graph.nodes())
    if (node->op() == composit::Symbol("composit::loops"))
      std::printf("%s\n", node->attribute("loops").as<std::string>().c_str());
  std::vector<std::pair<size_t, std::string>> sorted;
  for (const auto& [name, count] : counts) sorted.emplace_back(count, name);
  std::sort(sorted.rbegin(), sorted.rend());
  for (const auto& [count, name] : sorted) std::printf("  %6zu %s\n", count, name.c_str());
}

Tensors autograd(const Subject& subject, const Tensors& inputs, const Tensors& parameters) {
  return torch::autograd::grad({zoo::loss_of(subject, inputs)}, parameters, {}, {}, false, true);
}

// ‖a − b‖ / ‖b‖ over all tensors together.
double distance(const Tensors& a, const Tensors& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!b[i].defined()) continue;
    difference += (a[i].to(torch::kDouble) - b[i]).square().sum().item<double>();
    size += b[i].to(torch::kDouble).square().sum().item<double>();
  }
  return std::sqrt(difference / size);
}

// All trainable parameters that take part, or every so manieth where the gradients would not fit
// into memory: what flows back to one flows through the whole model.
std::vector<std::string> chosen(const flashlight::CaptureBase& captured) {
  constexpr int64_t kElements = 250'000'000;
  std::vector<std::string> names;
  int64_t total = 0;
  for (const flashlight::NamedTensor& named : captured.state())
    if (named.tensor.requires_grad()) {
      names.push_back(named.name);
      total += named.tensor.numel();
    }
  const auto stride = static_cast<size_t>(total / kElements + 1);
  std::vector<std::string> some;
  for (size_t i = 0; i < names.size(); i += stride) some.push_back(names[i]);
  return some;
}

// 7.3, 7.4: nodes, and the time to make the graph, its derivative, and to run every pass on both.
flashlight::Gradient build(const Subject& subject, const Tensors& inputs, bool timed,
                           Report& report) {
  const double eager = seconds([&] { zoo::loss_of(subject, inputs); });
  std::optional<flashlight::Capture<at::Tensor(Tensors)>> captured;
  const double capture = seconds([&] { captured = zoo::capture_loss(subject, inputs); });
  std::optional<flashlight::Gradient> gradient;
  const double derivative = seconds([&] { gradient = captured->grad(0, chosen(*captured)); });
  const double passes = seconds([&] {
    for (const composit::Pass& pass : composit::all_passes()) {
      pass.run(captured->graph());
      pass.run(gradient->graph());
    }
  });
  const size_t forward = operations(captured->graph()), all = operations(gradient->graph());
  std::printf(
      "%s: %zu operations, %zu with the gradient of %zu tensors\n"
      "  graph %.3f s, derivative %.3f s, every pass on both %.3f s\n",
      subject.name.c_str(), forward, all, gradient->names().size(), std::max(0.0, capture - eager),
      derivative, passes);
  report.raw(subject.name, "eager, capture, derivative, passes",
             {eager, capture, derivative, passes});
  report.target("7.3 operations with gradient / forward, " + subject.name, "<=", 4,
                static_cast<double>(all) / static_cast<double>(forward));
  if (timed)
    report.target("7.4 building, derivative and all passes, seconds, " + subject.name, "<=", 2,
                  std::max(0.0, capture - eager) + derivative + passes);
  return *gradient;
}

void measure(const Subject& subject, int rounds, bool timed, bool nodes_only, Report& report) {
  const torch::AutoGradMode grad_mode(true);
  const Tensors inputs = subject.inputs(1);
  std::optional<flashlight::Gradient> gradient = build(subject, inputs, timed, report);
  if (nodes_only) return print_operations(gradient->graph());

  const Tensors parameters = zoo::named(subject, gradient->names());
  Tensors expected, actual;
  std::vector<double> by_autograd, ours;
  for (int round = -1; round < rounds; ++round) {
    const double times[] = {seconds([&] { expected = autograd(subject, inputs, parameters); }),
                            seconds([&] { actual = (*gradient)(inputs).gradients; })};
    if (round < 0) continue;
    by_autograd.push_back(times[0]);
    ours.push_back(times[1]);
  }
  report.raw(subject.name, "autograd", by_autograd);
  report.raw(subject.name, "gradient graph", ours);
  std::printf("  gradient graph / autograd: %.3f\n", benchmarks::median_ratio(ours, by_autograd));
  gradient.reset();
  zoo::to_double(subject);
  const Tensors exact = autograd(subject, zoo::to_double(inputs), parameters);
  const double theirs = distance(expected, exact), own = distance(actual, exact);
  std::printf("  relative error: autograd %.3g, ours %.3g\n", theirs, own);
  report.target("7.2 error of float32 gradient / autograd's, " + subject.name, "<=", 4,
                own / theirs);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 5;
  bool nodes_only = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--nodes") == 0) nodes_only = true;
    if (i + 1 == argc) break;
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
  }
  Report report("gradients");
  const std::pair<const char*, Subject (*)()> entries[] = {{"small_encoder", zoo::small_encoder},
                                                           {"resnet50", zoo::resnet50},
                                                           {"resnet18_train", zoo::resnet18_train},
                                                           {"bert_base", zoo::bert_base},
                                                           {"clip_text", zoo::clip_text},
                                                           {"sd_vae_decoder", zoo::vae_decoder},
                                                           {"sd_unet", zoo::unet}};
  for (const auto& [name, make] : entries)
    if (only.empty() || only == name)
      measure(make(), rounds, name == std::string_view("sd_unet"), nodes_only, report);
  return report.finish();
}
