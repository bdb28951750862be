// Turns operations without a definition into calls of LibTorch, for code that may link with it.
//
//   if (const auto call = aten_call_of(node, schema)) ...   // aten::bincount(x; self=[0, 5], …
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "composit/ir/node.h"
#include "composit/op/schema.h"
#include "flashlight/loops/runtime_call.h"

namespace flashlight::loops {

// Schemas of operations that may become calls of LibTorch, by name with overload.
using AtenSchemas = std::map<std::string, composit::Schema>;
// Parses texts like "aten::bincount(Tensor self, …) -> Tensor". Skips namespaces other than `aten`,
// for which LibTorch has no C++ functions. UserError for a text that is no schema.
AtenSchemas aten_schemas(const std::vector<std::string>& texts);

// The call for `node`; nothing if the operation writes to its arguments. A result that is an
// undefined tensor has no elements. An operation that draws uses LibTorch's own generator.
// UserError for an argument that C++ cannot spell ("a generator").
std::optional<RuntimeCallOf> aten_call_of(const composit::Node& node,
                                          const composit::Schema& schema);

}  // namespace flashlight::loops
