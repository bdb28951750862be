#include "flashlight/mosaic/written_values.h"

#include <algorithm>
#include <charconv>

#include "composit/ir/transform.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/kernels/attention.h"
#include "flashlight/mosaic/kernels/form.h"
#include "flashlight/mosaic/kernels/product.h"

namespace flashlight::mosaic {
namespace {

using composit::Graph;
using composit::WrittenValue;

// The graph with the number of each node where its source line was: that is a remark, which no
// stage looks at, and which what a node becomes inherits.
Graph numbered(const Graph& graph) {
  std::vector<composit::NodeAnnotation> numbers;
  for (size_t i = 0; i < graph.nodes().size(); ++i)
    numbers.push_back({graph.nodes()[i].get(),
                       composit::Annotation{composit::Symbol("source"), std::to_string(i), -1}});
  return annotate(graph, numbers);
}

std::optional<size_t> node_of(const loops::Origin& origin) {
  size_t number = 0;
  const char* const end = origin.source.data() + origin.source.size();
  const auto read = std::from_chars(origin.source.data(), end, number);
  if (origin.source.empty() || read.ptr != end) return std::nullopt;
  return number;
}

void add_once(std::vector<size_t>& list, std::optional<size_t> number) {
  if (number && std::count(list.begin(), list.end(), *number) == 0) list.push_back(*number);
}

// Those that `step` computes, fused ones first, as a model has them.
std::vector<size_t> nodes_of(const loops::Step& step) {
  std::vector<size_t> nodes;
  if (const auto* nest = std::get_if<loops::Nest>(&step))
    for (const loops::Origin& origin : nest->fused) add_once(nodes, node_of(origin));
  add_once(nodes, node_of(loops::origin_of(step)));
  return nodes;
}

void add_values(const Plan& plan, const Kernel& kernel, const std::vector<std::string>& names,
                std::vector<WrittenValue>& values) {
  const ProductData* const product = product_data(kernel);
  const AttentionData* const attention = attention_data(kernel);
  for (const ValueId value : written(plan, kernel))
    for (const StepId id : kernel.steps) {
      const loops::Step& step = plan.routine.steps[id];
      if (plan.homes[value] == Home::kernel || !loops::contains(loops::writes(step), value))
        continue;
      const std::optional<size_t> node = node_of(loops::origin_of(step));
      if (!node) continue;
      WrittenValue one{.name = names[value], .node = *node, .nodes = nodes_of(step)};
      if (product != nullptr) one.product = product->product.operand;
      if (attention != nullptr) {
        one.product = attention->attention.scores.operand;
        for (const StepId other : kernel.steps)
          for (const size_t number : nodes_of(plan.routine.steps[other]))
            add_once(one.nodes, number);
      }
      values.push_back(std::move(one));
      break;
    }
}

}  // namespace

std::vector<WrittenValue> written_values(const Graph& graph, const PlanOptions& options) {
  const Plan plan = plan_of(numbered(graph), options);
  const std::vector<std::string> names = value_names(plan.routine);
  std::vector<WrittenValue> values;
  for (const Kernel& kernel : plan.run) add_values(plan, kernel, names, values);
  return values;
}

}  // namespace flashlight::mosaic
