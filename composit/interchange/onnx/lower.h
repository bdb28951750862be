// A graph of ONNX's operators.
//
//   const Lowered lowered = lower(graph);
//   print(lowered.graph);                       // %Conv = onnx::Conv(%x, %weight, …)
#pragma once

#include "composit/interchange/lower.h"
#include "composit/interchange/onnx.h"

namespace composit::onnx {

using interchange::Lowered;
using interchange::MayFold;

// See composit/interchange/lower.h. That sizes which follow from values are what they were is one
// more guard each. `matmul_nbits`: as in OnnxOptions.
Lowered lower(const Graph& graph, int opset = OnnxOptions().opset, const MayFold& may_fold = {},
              bool matmul_nbits = false);
// The same without these guards, for a family that has other such sizes as well.
Lowered lower_open(const Graph& graph, int opset, const MayFold& may_fold,
                   bool matmul_nbits = false);
// True for a node whose result is as long as values say.
bool has_open_size(const Node& node);
// The guard of such a size: a bool without axes, and what it asks.
LazyTensor size_holds(const NodePtr& node);
std::string size_text(const Node& node);

}  // namespace composit::onnx
