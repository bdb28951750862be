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
// more guard each.
// `hold_sizes`: with a guard for each size that follows from values, that it is what it was.
Lowered lower(const Graph& graph, int opset = OnnxOptions().opset, const MayFold& may_fold = {});

}  // namespace composit::onnx
