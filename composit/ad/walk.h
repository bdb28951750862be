// The reverse walk over a part of a graph that `chain_rule` and the derivatives of decompositions
// share.
#pragma once

#include <functional>
#include <vector>

#include "composit/ir/node.h"

namespace composit {

// What flows to each of `inputs`, absent where nothing does, when `cotangent(i)` (which may be
// absent) flows into outputs[i]. The walk ends at `boundary`: nothing behind these tensors is
// looked at.
LazyTensors walk_back(const LazyTensors& outputs, const LazyTensors& inputs,
                      const LazyTensors& boundary,
                      const std::function<LazyTensor(size_t)>& cotangent);

}  // namespace composit
