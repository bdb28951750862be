// Turns branches and loops of a graph into steps of a program.
//
//   Control control = control_of(node, values, functions);
#pragma once

#include <functional>

#include "composit/ir/graph.h"
#include "flashlight/loops/program.h"

namespace flashlight::loops {

// True if `operation` is cond, map, scan or while_loop.
bool is_control(const composit::Symbol& operation);

// The step for `node`, without results and origin. `value_of` returns the value of an operand;
// `function_of` returns the function for a region, with `name` as its name.
Control control_of(
    const composit::Node& node, const std::function<ValueId(const composit::LazyTensor&)>& value_of,
    const std::function<FunctionId(const composit::Region&, const std::string& name)>& function_of);

}  // namespace flashlight::loops
