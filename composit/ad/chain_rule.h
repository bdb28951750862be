// Reverse mode differentiation of graphs: gradients are graphs, too, so they can be differentiated
// again, printed, optimised and compiled like any other.
//
//   LazyTensors slopes = grad(loss, {w, b});         // one per input
//   auto gradients = chain_rule({{loss, loss}}, {w});           // a loss may map to itself
//
// The derivative of an operation is, in this order: its row's vjp; the derivative of its
// decomposition; the transposition of its loop form (a `composit::loops` node); the derivative of
// its region, for a composite without a row. An operation with none of these is an error that names
// its schema. Work and nodes are linear in the size of the graph.
//
// Gradients of complex tensors are torch's: conjugate Wirtinger derivatives.
#pragma once

#include <utility>
#include <vector>

#include "composit/ir/node.h"

namespace composit {

// A tensor and the cotangent that flows into it: the derivative of the final result by it.
struct Seed {
  LazyTensor output;     // an output of the graph
  LazyTensor cotangent;  // has the output's sizes and dtype
};

// One gradient per input, of its sizes and dtype: the sum over all seeds of
// cotangent * d output / d input. Zeros where no seed depends on the input. `inputs` may be any
// tensors, inner ones included, whose own origin is not looked at then.
// UserError for an input or an output that is not of a floating point or complex dtype, a cotangent
// of another type than its output, and an operation without a derivative.
LazyTensors chain_rule(const std::vector<Seed>& seeds, const LazyTensors& inputs);

// The gradients of `loss`, a tensor of one element.
LazyTensors grad(const LazyTensor& loss, const LazyTensors& inputs);

// Forward mode: how `outputs` change along `tangents`, one per input.
LazyTensors jvp(const LazyTensors& outputs, const LazyTensors& inputs, const LazyTensors& tangents);

// The second derivatives of `loss` by `inputs` times `vectors`, one per input.
LazyTensors hessian_vector_product(const LazyTensor& loss, const LazyTensors& inputs,
                                   const LazyTensors& vectors);

}  // namespace composit
