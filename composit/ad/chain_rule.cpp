#include "composit/ad/chain_rule.h"

#include <algorithm>

#include "composit/ad/expr_derivative.h"
#include "composit/ad/vjp.h"
#include "composit/ad/walk.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

void expect_differentiable(const char* what, const LazyTensor& tensor) {
  if (!tensor || !is_differentiable(tensor.dtype()))
    throw UserError("[chain_rule] expected an " + std::string(what) +
                    " of a floating point or complex dtype, received " +
                    (tensor ? print(tensor.type()) : "none"));
}

void expect_cotangent(const Seed& seed) {
  expect_differentiable("output", seed.output);
  if (!seed.cotangent || seed.cotangent.sizes() != seed.output.sizes() ||
      seed.cotangent.dtype() != seed.output.dtype())
    throw UserError("[chain_rule] expected a cotangent of " + print(seed.output.type()) +
                    ", received " + (seed.cotangent ? print(seed.cotangent.type()) : "none"));
}

// `results` with zeros for these inputs. The derivative by a cotangent has the same values whatever
// the cotangent is, but may read what a loop gives beside others that depend on it.
LazyTensors with_zeros(const LazyTensors& results, const LazyTensors& inputs) {
  const Graph graph = rebuild(Graph({.outputs = {results.begin(), results.end()}}),
                              [&](const Node& node, const LazyTensors&) {
                                std::optional<Replacement> replacement;
                                for (const LazyTensor& one : inputs)
                                  if (one.node.get() == &node)
                                    replacement = Replacement{.outputs = {zeros_like(one)}};
                                return replacement;
                              });
  return {graph.outputs().begin(), graph.outputs().end()};
}

}  // namespace

LazyTensors chain_rule(const std::vector<Seed>& seeds, const LazyTensors& inputs) {
  for (const LazyTensor& input : inputs) expect_differentiable("input", input);
  LazyTensors outputs;
  for (const Seed& seed : seeds) {
    expect_cotangent(seed);
    outputs.push_back(seed.output);
  }
  const LazyTensors gradients =
      walk_back(outputs, inputs, inputs, [&](size_t i) { return seeds[i].cotangent; });
  LazyTensors results;
  for (size_t i = 0; i < inputs.size(); ++i)
    results.push_back(gradients[i].defined() ? gradients[i] : zeros_like(inputs[i]));
  return results;
}

LazyTensors grad(const LazyTensor& loss, const LazyTensors& inputs) {
  if (!loss || loss.type().numel() != 1)
    throw UserError("[grad] expected a loss of one element, received " +
                    (loss ? print(loss.type()) : "none"));
  return chain_rule({{loss, ones_like(loss)}}, inputs);
}

// The vjp is linear in its cotangents; transposing it once more gives the jvp.
LazyTensors jvp(const LazyTensors& outputs, const LazyTensors& inputs,
                const LazyTensors& tangents) {
  if (tangents.size() != inputs.size())
    throw UserError("[jvp] expected " + std::to_string(inputs.size()) + " tangents, received " +
                    std::to_string(tangents.size()));
  std::vector<Seed> seeds, back;
  LazyTensors cotangents;
  for (const LazyTensor& output : outputs) {
    cotangents.push_back(input("jvp cotangent " + std::to_string(cotangents.size()), output.type(),
                               InputKind::block));
    seeds.push_back({output, cotangents.back()});
  }
  const auto gradients = chain_rule(seeds, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) back.push_back({gradients[i], tangents[i]});
  return with_zeros(chain_rule(back, cotangents), cotangents);
}

LazyTensors hessian_vector_product(const LazyTensor& loss, const LazyTensors& inputs,
                                   const LazyTensors& vectors) {
  if (vectors.size() != inputs.size())
    throw UserError("[hessian_vector_product] expected " + std::to_string(inputs.size()) +
                    " vectors, received " + std::to_string(vectors.size()));
  const auto gradients = grad(loss, inputs);
  std::vector<Seed> seeds;
  for (size_t i = 0; i < inputs.size(); ++i) seeds.push_back({gradients[i], vectors[i]});
  return chain_rule(seeds, inputs);
}

}  // namespace composit
