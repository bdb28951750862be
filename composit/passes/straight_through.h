// Numbers that are rounded to integers of few bits and back let gradients through: the
// straight-through estimator of quantization-aware training (https://arxiv.org/abs/1308.3432).
//
//   const Graph trainable = straight_through(graph);
//   const Graph also = run_passes(graph, find_passes("straight_through"));
//
// Without it, a derivative that goes through `quantized_decomposed::quantize_…` is refused. Values
// stay what they are, bit by bit.
#pragma once

#include "composit/ir/graph.h"

namespace composit {

// `dequantize_…(quantize_…(x, …), …)` becomes `composit::straight_through` of it and x, whose
// derivative by x is 1.
Graph straight_through(const Graph& graph);

}  // namespace composit
