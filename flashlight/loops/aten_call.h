// Operations without a definition as calls of LibTorch, for code that may be linked with it.
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

// By operation, with overload: what may become a call of LibTorch.
using AtenSchemas = std::map<std::string, composit::Schema>;
// From their text, "aten::bincount(Tensor self, …) -> Tensor"; those of other namespaces than
// `aten` are left out: LibTorch has no C++ functions for them. UserError for what is no schema.
AtenSchemas aten_schemas(const std::vector<std::string>& texts);

// Nothing for what writes to its arguments or gives undefined tensors. What draws takes the numbers
// of LibTorch's generator. UserError for an
// argument that C++ cannot write ("a generator").
std::optional<RuntimeCallOf> aten_call_of(const composit::Node& node,
                                          const composit::Schema& schema);

}  // namespace flashlight::loops
