// The derivative of what works element by element as named operations on whole tensors, which every
// backend knows and a reader recognises:
//
// ```text
//   y = exp(x): dx = aten::mul(dy, y)            y = a + b: da = aten::sum(dy) over what broadcast
// ```
//
// The expression of the derivative is that of expr_derivative.h; each function in it is one
// operation. What is the forward result is taken from there.
#pragma once

#include <optional>
#include <vector>

#include "composit/ir/node.h"
#include "composit/op/loops.h"

namespace composit {

// The cotangent of each wanted operand. Nothing if an element of the result depends on elements
// other than those that broadcasting pairs with it, or if the derivative needs a function for which
// there is no operation.
std::optional<LazyTensors> pointwise_vjp(const Loops& loops, const LazyTensors& operands,
                                         const LazyTensors& results, const LazyTensors& cotangents,
                                         const std::vector<bool>& wanted);

}  // namespace composit
