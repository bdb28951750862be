// The kinds of operation that a picture tells apart by colour: `Kinds().of(node)`.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "composit/ir/node.h"
#include "composit/op/operation.h"

namespace composit::drawing {

// The kinds of all operations that there are when it is made.
class Kinds {
 public:
  Kinds();
  // As the node's row says, or rows of the same base name: those of overloads, of forms in place
  // and backward. Else draws are random, and shapes tell what is computed element by element.
  OpKind of(const Node& node) const;

 private:
  void add(const Operation& operation, std::string_view name);
  std::map<std::string, OpKind, std::less<>> of_names_;
};

struct Colours {
  std::string_view name;  // for the legend
  std::string_view fill;
  std::string_view line;
};
const Colours& colours(OpKind kind);

}  // namespace composit::drawing
