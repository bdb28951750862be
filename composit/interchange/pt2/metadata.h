// Where a node comes from, as torch.export's files say it.
#pragma once

#include <string>
#include <string_view>

#include "composit/interchange/pt2/format.h"
#include "composit/ir/node.h"

namespace composit::pt2 {

// The module and the line that a node belongs to.
struct Origin {
  std::string_view scope = {}, source = {};
};
// Of a node; where it does not say, those of what it is a part of.
Origin origin_of(const Node& node, const Origin& around);

// The stack of modules, and the line as Python prints it in a stack trace.
Json metadata_of(const Origin& origin);

// "torch.ops.aten.add.Tensor" of "aten::add.Tensor"; without an overload ".default".
std::string target_of(Symbol op);

}  // namespace composit::pt2
