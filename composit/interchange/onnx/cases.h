// Models of the cases of a family as one, in which sizes choose by `If`.
//
//   const Unified whole = with_cases(tree, {lower_family(a), lower_family(b)});
//   print(whole.lowered.graph);         // … = onnx::If(%LessOrEqual, %x, …)
#pragma once

#include <vector>

#include "composit/family/size_tree.h"
#include "composit/interchange/onnx/unify.h"

namespace composit::onnx {

// `leaves`: those of the tree. Guards of a case hold where another one is taken. UserError where
// the cases give results of another number, dtype or number of axes.
Unified with_cases(const SizeTree& tree, const std::vector<Unified>& leaves);

}  // namespace composit::onnx
