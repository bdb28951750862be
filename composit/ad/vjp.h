// The derivative of one node, by whatever its operation offers; see composit/ad/chain_rule.h.
#pragma once

#include <vector>

#include "composit/ops/operations.h"

namespace composit {

// One gradient per operand of `node`, absent where none flows. `cotangents`: one per output, absent
// where none came; `wanted`: per operand.
LazyTensors vjp_of(const NodePtr& node, const LazyTensors& cotangents,
                   const std::vector<bool>& wanted);

// The same as the row's own vjp, but by transposition of its loop form: the oracle that explicit
// rules are compared with. Nothing where the operation has no loop form.
std::optional<LazyTensors> vjp_by_transposition(const NodePtr& node, const LazyTensors& cotangents,
                                                const std::vector<bool>& wanted);

}  // namespace composit
