// The reverse walk over a part of a graph that `chain_rule` and the derivatives of decompositions
// share.
#pragma once

#include <functional>
#include <vector>

#include "composit/ir/node.h"

namespace composit {

// The cotangent of each of `inputs`, given the cotangent `cotangent(i)` of outputs[i], which may be
// absent. A result is absent if no gradient reaches that input. The walk stops at the tensors of
// `boundary`.
LazyTensors walk_back(const LazyTensors& outputs, const LazyTensors& inputs,
                      const LazyTensors& boundary,
                      const std::function<LazyTensor(size_t)>& cotangent);

}  // namespace composit
