// The reverse walk over a part of a graph that `chain_rule` and the derivatives of decompositions
// share.
#pragma once

#include <functional>
#include <vector>

#include "composit/op/tensor.h"

namespace composit {

// What flows to each of `inputs`, absent where nothing does, when `cotangent(i)` (which may be
// absent) flows into outputs[i]. The walk ends at `boundary`: nothing behind these tensors is
// looked at.
Tensors walk_back(const std::vector<LazyTensor>& outputs, const std::vector<LazyTensor>& inputs,
                  const std::vector<LazyTensor>& boundary,
                  const std::function<Tensor(size_t)>& cotangent);

}  // namespace composit
