// Maps operations that no loops compute to functions of the runtime: sorting, factors of matrices,
// random draws, guards.
//
//   if (const auto call = runtime_call_of(node, origin)) ...   // order::sort; lines=[2, 5, 1], …
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "composit/ir/node.h"
#include "composit/op/operation.h"
#include "flashlight/loops/program.h"

namespace flashlight::loops {

// A call without its values: its arguments are the node's first `operands` operands, its results
// the node's outputs.
struct RuntimeCallOf {
  RuntimeCall call;
  size_t operands = 0;
  bool broadcasts = false;  // arguments are broadcast to the result's sizes
};

// Nothing for other operations. UserError for a case that there is no function for ("into memory
// that is not row-major").
std::optional<RuntimeCallOf> runtime_call_of(const composit::Node& node, const Origin& origin);

// True if there is code for an operation: loops, a function, or parts that have code.
bool has_code(const composit::Operation& operation);

}  // namespace flashlight::loops
