// Derivatives of functions, as jax has them: chain_rule.h differentiates tensors that exist, this
// differentiates C++ functions of tensors.
//
//   const auto square = [](const LazyTensors& x) { return sum(x[0] * x[0]); };
//   LazyTensors slope = grad(square)({x});
//   auto [value, gradients] = value_and_grad(square)({x});
//   LazyTensors twice = grad([&](const LazyTensors& y) { return sum(grad(square)(y)[0]); })({x});
//
// A function is called once, on arguments of its own, which the inputs then replace. So f is
// differentiated by its arguments alone: a tensor it takes from outside is a constant even where it
// is an input as well, and a tensor that is given twice gets two gradients.
// UserError as in chain_rule.h.
#pragma once

#include <functional>

#include "composit/ir/node.h"

namespace composit {

using LossFunction = std::function<LazyTensor(const LazyTensors& inputs)>;  // returns one element

// f's results, and what takes a cotangent for each to a gradient for each input.
struct Pullback {
  LazyTensors results;  // the results of f
  TensorFunction back;  // from cotangents to gradients
};
// Reverse mode: f is run once, and can be gone back through for several cotangents.
Pullback vjp(const TensorFunction& f, const LazyTensors& inputs);

// The result of a function made by `value_and_grad`.
struct ValueAndGradients {
  LazyTensor value;       // of the loss
  LazyTensors gradients;  // one per input
};
// A function that gives f's value and its gradients by all inputs; the gradients alone.
std::function<ValueAndGradients(const LazyTensors& inputs)> value_and_grad(LossFunction f);
TensorFunction grad(LossFunction f);

// f's results, and how they change along `tangents`, one per input.
struct Pushforward {
  LazyTensors results, tangents;  // the results of f; their tangents
};
// Forward mode: see Pushforward.
Pushforward jvp(const TensorFunction& f, const LazyTensors& inputs, const LazyTensors& tangents);

// The second derivatives of f times `vectors`, one per input.
LazyTensors hessian_vector_product(const LossFunction& f, const LazyTensors& inputs,
                                   const LazyTensors& vectors);

}  // namespace composit
