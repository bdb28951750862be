#include "composit/ad/functional.h"

#include <atomic>

#include "composit/ad/chain_rule.h"
#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/transform.h"

namespace composit {
namespace {

LazyTensors lazy(const LazyTensors& tensors) { return {tensors.begin(), tensors.end()}; }
LazyTensors tensors(const LazyTensors& lazy) { return {lazy.begin(), lazy.end()}; }

// Stand-ins for inputs. An input is its name and type, and calls may nest: no two have one name.
class Placeholders {
 public:
  explicit Placeholders(const LazyTensors& inputs) : inputs_(inputs) {
    static std::atomic<uint64_t> count = 0;
    for (const LazyTensor& tensor : inputs) {
      if (!tensor.defined()) throw UserError("[vjp] expected an input, received none");
      own_.emplace_back(
          input("argument " + std::to_string(count++), tensor.type(), InputKind::block));
    }
  }
  const LazyTensors& own() const { return own_; }

  // `results` of the inputs in the place of the stand-ins.
  LazyTensors replaced(const LazyTensors& results) const {
    FlatMap<const Node*, LazyTensor> input_of;
    for (size_t i = 0; i < own_.size(); ++i) input_of.insert(own_[i].node.get(), inputs_[i]);
    const Graph graph =
        rebuild(Graph({.outputs = lazy(results)}), [&](const Node& node, const LazyTensors&) {
          std::optional<Replacement> replacement;
          if (const LazyTensor* found = input_of.find(&node))
            replacement = Replacement{.outputs = {*found}};
          return replacement;
        });
    return tensors(graph.outputs());
  }

 private:
  LazyTensors inputs_, own_;
};

void expect_as_many(const char* name, const char* what, size_t expected, size_t received) {
  if (expected != received)
    throw UserError("[" + std::string(name) + "] expected " + std::to_string(expected) + " " +
                    what + ", received " + std::to_string(received));
}

}  // namespace

Pullback vjp(const TensorFunction& f, const LazyTensors& inputs) {
  const Placeholders placeholders(inputs);
  const LazyTensors results = f(placeholders.own());
  const TensorFunction back = [placeholders, results](const LazyTensors& cotangents) {
    expect_as_many("vjp", "cotangents", results.size(), cotangents.size());
    std::vector<Seed> seeds;
    for (size_t i = 0; i < results.size(); ++i) seeds.push_back({results[i], cotangents[i]});
    return placeholders.replaced(tensors(chain_rule(seeds, lazy(placeholders.own()))));
  };
  return {placeholders.replaced(results), back};
}

std::function<ValueAndGradients(const LazyTensors&)> value_and_grad(LossFunction f) {
  return [f = std::move(f)](const LazyTensors& inputs) {
    const Placeholders placeholders(inputs);
    const LazyTensor value = f(placeholders.own());
    LazyTensors results = tensors(grad(value, lazy(placeholders.own())));
    results.push_back(value);
    results = placeholders.replaced(results);
    const LazyTensor replaced = results.back();
    results.pop_back();
    return ValueAndGradients{replaced, results};
  };
}

TensorFunction grad(LossFunction f) {
  return [both = value_and_grad(std::move(f))](const LazyTensors& inputs) {
    return both(inputs).gradients;
  };
}

Pushforward jvp(const TensorFunction& f, const LazyTensors& inputs, const LazyTensors& tangents) {
  expect_as_many("jvp", "tangents", inputs.size(), tangents.size());
  const Placeholders placeholders(inputs);
  const LazyTensors results = f(placeholders.own());
  const auto along = jvp(lazy(results), lazy(placeholders.own()), lazy(tangents));
  return {placeholders.replaced(results), placeholders.replaced(tensors(along))};
}

LazyTensors hessian_vector_product(const LossFunction& f, const LazyTensors& inputs,
                                   const LazyTensors& vectors) {
  expect_as_many("hessian_vector_product", "vectors", inputs.size(), vectors.size());
  const Placeholders placeholders(inputs);
  const LazyTensor value = f(placeholders.own());
  return placeholders.replaced(
      tensors(hessian_vector_product(value, lazy(placeholders.own()), lazy(vectors))));
}

}  // namespace composit
