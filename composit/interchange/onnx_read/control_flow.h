// `If`, `Loop` and `Scan`: nodes of a model that have graphs.
//
//   LazyTensors results = control_flow(call, known, [&](const GraphProto& graph,
//                                                       const LazyTensors& arguments) { … });
//
// Where a condition is known, one branch is taken; loops of few trips whose number is known are
// written out. Others become composit's (composit/ops/control_flow.h).
#pragma once

#include <functional>

#include "composit/interchange/onnx_read/known.h"
#include "composit/interchange/onnx_read/operator_call.h"

namespace composit::onnx_read {

// The outputs of a graph of the node for these arguments.
using Inlined = std::function<LazyTensors(const GraphProto& graph, const LazyTensors& arguments)>;

bool is_control_flow(const NodeProto& node);
// UserError for loops that give outputs of each trip where the number of trips is not known.
LazyTensors control_flow(const OperatorCall& call, Known& known, const Inlined& inlined);

}  // namespace composit::onnx_read
