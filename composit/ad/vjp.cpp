#include "composit/ad/vjp.h"

#include <algorithm>
#include <functional>

#include "composit/ad/pointwise.h"
#include "composit/ad/transpose.h"
#include "composit/ad/walk.h"
#include "composit/ir/graph.h"
#include "composit/ir/transform.h"
#include "composit/ops/draws.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

// Places of a call that its row says carry no gradient.
std::vector<bool> differentiable_places(const Operation& operation, const Call& call) {
  std::vector<bool> result(call.tensors().size(), true);
  const std::string_view names = operation.row.nondifferentiable;
  for (size_t i = 0; i < call.size(); ++i) {
    const std::string& name = call.schema().arguments[i].name;
    const size_t found = names.find(name);
    if (found == std::string_view::npos || name.empty()) continue;
    const size_t end = i + 1 < call.size() ? call.first_tensor(i + 1) : result.size();
    for (size_t place = call.first_tensor(i); place < end; ++place) result[place] = false;
  }
  return result;
}

// A `composit::loops` node for each wanted operand.
LazyTensors transposed(const Loops& loops, const LazyTensors& operands,
                       const LazyTensors& cotangents, const std::vector<bool>& wanted) {
  std::vector<bool> has;
  for (const LazyTensor& cotangent : cotangents) has.push_back(cotangent.defined());
  has.resize(loops.results.size());
  LazyTensors all = operands, gradients(operands.size());
  all.insert(all.end(), cotangents.begin(), cotangents.end());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!wanted[i]) continue;
    const Transposed back = transpose(loops, i, has);
    LazyTensors read;
    for (size_t number : back.operands) read.push_back(all[number]);
    gradients[i] = apply_one("composit::loops", {read, print(back.loops)});
  }
  return gradients;
}

// The operands of `node` among the places of `call`: values per place, put at operands.
template <class T>
std::vector<T> by_operand(const Call& call, size_t operands, const std::vector<T>& by_place) {
  std::vector<T> result(operands);
  for (size_t place = 0; place < by_place.size(); ++place)
    if (call.tensors()[place].defined()) result[call.operand(place)] = by_place[place];
  return result;
}

// Back through `results`, which were worked out from the operands of a node. What flows to a tensor
// that is several operands is their sum, and is given for the first.
LazyTensors through(const LazyTensors& results, const Node& node, const LazyTensors& cotangents,
                    const std::vector<bool>& wanted) {
  LazyTensors inputs = node.operands();
  FlatMap<Hash, std::monostate> seen;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!wanted[i] || !seen.insert(inputs[i].hash(), {})) inputs[i] = LazyTensor();
  return walk_back(results, inputs, node.operands(), [&](size_t i) { return cotangents[i]; });
}

// The results of a node's region for the node's operands.
LazyTensors outcome(const Node& node, const Graph& body) {
  LazyTensors arguments;
  for (const LazyTensor& operand : node.operands())
    if (operand) arguments.push_back(operand);
  return inlined(body, arguments, [](NodeSpec& spec) { spec.place = 0; });
}

LazyTensors back(const LazyTensors& outputs, const LazyTensors& inputs,
                 const LazyTensors& cotangents) {
  return walk_back(outputs, inputs, inputs, [&](size_t i) { return cotangents[i]; });
}

// A row that gives as many results as the node has speaks for it.
std::optional<LazyTensors> by_row(const Operation& operation, const NodePtr& node,
                                  const LazyTensors& cotangents, const std::vector<bool>& wanted) {
  const Row& row = operation.row;
  const Call call = call_of(*node, operation.schema);
  const std::vector<bool> open = differentiable_places(operation, call);
  Vjp v{.cotangents = cotangents, .results = {}, .wanted = {}, .back = back};
  for (uint32_t i = 0; i < node->outputs().size(); ++i) v.results.emplace_back(LazyTensor{node, i});
  for (size_t place = 0; place < call.tensors().size(); ++place)
    v.wanted.push_back(open[place] && call.tensors()[place].defined() &&
                       wanted.at(call.operand(place)));
  if (std::none_of(v.wanted.begin(), v.wanted.end(), std::identity()))
    return LazyTensors(node->operands().size());
  const std::vector<bool> of_operands = by_operand(call, node->operands().size(), v.wanted);
  if (row.vjp) {
    LazyTensors gradients =
        in_operation(operation.schema, [&] { return row.vjp({.call = &call, .vjp = &v}); });
    gradients.resize(gradients.empty() ? 0 : call.tensors().size());
    if (!gradients.empty()) return by_operand(call, node->operands().size(), gradients);
  }
  if (row.decompose) {
    LazyTensors results = decompose(operation, call);
    if (results.size() != node->outputs().size()) return std::nullopt;
    return through(results, *node, cotangents, of_operands);
  }
  if (const auto loops = loops_of(operation, call)) {
    LazyTensors operands(node->operands().begin(), node->operands().end());
    // That of a nameless loop form is one, too: its branches stay branches.
    const bool nameless = operation.schema.name.str() == "composit::loops";
    return in_operation(operation.schema, [&] {
      std::optional<LazyTensors> named;
      if (!nameless) named = pointwise_vjp(*loops, operands, v.results, cotangents, of_operands);
      return named ? *named : transposed(*loops, operands, cotangents, of_operands);
    });
  }
  return std::nullopt;
}

std::string where(const Node& node) {
  std::string text;
  for (const char* key : {"scope", "source"})
    if (const auto value = node.annotation(key); !value.empty())
      text += ", " + std::string(key) + " " + std::string(value);
  return text;
}

}  // namespace

LazyTensors vjp_of(const NodePtr& node, const LazyTensors& cotangents,
                   const std::vector<bool>& wanted) {
  if (std::none_of(cotangents.begin(), cotangents.end(),
                   [](const LazyTensor& tensor) { return tensor.defined(); }))
    return LazyTensors(node->operands().size());
  if (find_draw(node->op()) != nullptr) return LazyTensors(node->operands().size());
  const Operation* operation = operation_of(*node);
  if (operation != nullptr)
    if (auto gradients = by_row(*operation, node, cotangents, wanted)) return *gradients;
  if (const Attribute* body = node->find_run("body")) {
    return through(outcome(*node, *body->as<Region>()), *node, cotangents, wanted);
  }
  throw UserError("no vjp rule for " +
                  (operation != nullptr ? print(operation->schema) : node->op().str()) +
                  where(*node));
}

std::optional<LazyTensors> vjp_by_transposition(const NodePtr& node, const LazyTensors& cotangents,
                                                const std::vector<bool>& wanted) {
  const Operation* operation = operation_of(*node);
  if (operation == nullptr) return std::nullopt;
  const auto loops = loops_of(*operation, call_of(*node, operation->schema));
  if (!loops) return std::nullopt;
  return transposed(*loops, node->operands(), cotangents, wanted);
}

}  // namespace composit
