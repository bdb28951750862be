// Where a node comes from, as torch.export's files say it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "composit/interchange/pt2/format.h"
#include "composit/interchange/refusals.h"

namespace composit::pt2 {

using interchange::Origin;
using interchange::origin_of;

// What the nodes of a graph say of themselves, in their order: the stack of modules, and the line
// as Python prints it in a stack trace. A module that is entered again is called again, which torch
// tells by a number in the key: "L__self___a@1".
class Metadata {
 public:
  Json next(const Origin& origin);

 private:
  std::string module_stack(std::string_view scope);

  std::map<std::string, size_t, std::less<>> calls_;          // by path of a module
  std::vector<std::pair<std::string, std::string>> entered_;  // path and key of those around a node
};

// "torch.ops.aten.add.Tensor" of "aten::add.Tensor"; without an overload ".default".
std::string target_of(Symbol op);

}  // namespace composit::pt2
