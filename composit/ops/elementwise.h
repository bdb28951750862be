// Functions of numbers, applied to each element of tensors.
//
//   LazyTensor y = elementwise([](const LazyTensors& x) {
//     return cond(x[0] < 0, [&](const LazyTensors&) { return LazyTensors{0 * x[0]}; },
//                 [&](const LazyTensors&) { return LazyTensors{x[0] * x[0]}; });
//   })({x})[0];
//
// Tensors are broadcast together. What consists of functions of scalars and branches becomes one
// loop, a `composit::loops` node that computes the branch it takes; anything else (a loop of its
// own, an inner tensor) a `composit::map` over the elements.
#pragma once

#include <optional>

#include "composit/ir/node.h"
#include "composit/op/scalar_program.h"

namespace composit {

// `program` of each element, in the common floating point dtype of the tensors (integers become
// float32); one result per result of the program. UserError where sizes do not broadcast.
LazyTensors elementwise(const ScalarProgram& program, const LazyTensors& tensors);

// `f`, a function of this number of numbers (zero-dimensional tensors), as a program; nothing where
// it has tensors or loops.
std::optional<ScalarProgram> scalar_program(const TensorFunction& f, size_t parameters,
                                            DType dtype = DType::float64);

// `f`, a function of zero-dimensional tensors, of each element of tensors that broadcast, as one
// loop; nothing where it is no function of scalars.
std::optional<LazyTensors> as_one_loop(const TensorFunction& f, const LazyTensors& tensors);

// `f`, a function of zero-dimensional tensors to zero-dimensional tensors, of each element.
TensorFunction elementwise(TensorFunction f);

}  // namespace composit
