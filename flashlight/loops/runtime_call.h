// Operations that the runtime has a function for, where no loops do: order, factors of matrices,
// random draws, guards.
//
//   if (const auto call = runtime_call_of(node)) ...   // order::sort; lines=[2, 5, 1], …
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "composit/ir/node.h"
#include "composit/op/operation.h"
#include "flashlight/loops/program.h"

namespace flashlight::loops {

// Values left out: arguments are the node's first `operands` ones, results its outputs.
struct RuntimeCallOf {
  RuntimeCall call;
  size_t operands = 0;
  bool broadcasts = false;  // arguments become as large as the result
};

// Nothing for other operations. UserError for a case that there is no function for ("into memory
// that is not row-major").
std::optional<RuntimeCallOf> runtime_call_of(const composit::Node& node, const Origin& origin);

// Whether there is code for an operation: loops, a function, or parts that have code.
bool has_code(const composit::Operation& operation);

}  // namespace flashlight::loops
