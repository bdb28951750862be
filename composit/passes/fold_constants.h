// Replaces nodes that depend on constants only by constants.
//
//   Graph folded = fold_constants(graph);
//   Graph more = fold_constants(graph, {.exact = false, .max_bytes = 1 << 24});
//
// Exact against LibTorch's kernels is only what moves elements, compares them or computes with
// integers: there is one right result. Sums in floating point depend on the order of a kernel, and
// exp on its approximation; they are folded when `exact` is not asked for. Operations without
// operands (`full`, `arange`) stay, unless something that depends on them is folded.
#pragma once

#include <functional>

#include "composit/eval/evaluate.h"
#include "composit/ir/graph.h"

namespace composit {

// Options of folding.
struct FoldOptions {
  bool exact = true;                     // bit for bit what LibTorch computes
  int64_t max_bytes = int64_t{1} << 20;  // largest size of one constant
  const Backend* backend = nullptr;      // computes the values; `reference()`, where not given
  // Nodes that may become constants, those of regions included; not given: all.
  std::function<bool(const Node&)> may_fold = {};
};

Graph fold_constants(const Graph& graph, const FoldOptions& options = {});

}  // namespace composit
