// A composite operation whose parts the graph holds anyway becomes these parts.
//
// ```text
//   %y = aten::layer_norm(%x, …)                            %y, %mean, %rstd = native_layer_norm(…)
//   %z, %mean, %rstd = aten::native_layer_norm(%x, …)   →
//   … = aten::native_layer_norm_backward(…, %mean, %rstd)   … = native_layer_norm_backward(…)
// ```
//
// Derivatives ask for what the parts of a forward operation save; without this pass the forward
// operation runs twice.
#pragma once

#include "composit/ir/graph.h"

namespace composit {

Graph share_parts(const Graph& graph);

}  // namespace composit
