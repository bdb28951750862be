// Graphs of ONNX's operators of one program at several sizes, as one whose sizes are worked out
// when it runs.
//
//   const Unified unified = unify(family, {{at_2x16, …}, {at_3x23, …}, …}, {});
//   print(unified.lowered.graph);       // %Reshape = onnx::Reshape(%x, %Concat)
//
// The graphs have to be alike node by node, but for constants: those become values of sizes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "composit/family/family.h"
#include "composit/interchange/onnx/lower.h"
#include "composit/ir/error.h"

namespace composit::onnx {

struct Example {
  SizeValues sizes;
  Lowered lowered;
};

// Names of the sizes of a value that are no numbers, by axis; nothing for one that is. Empty: it
// follows from sizes in a way that has no name.
using SizeNames = std::vector<std::optional<std::string>>;

struct Unified {
  Lowered lowered;  // with the types of the first example; guards of sizes are the last
  // Of values of the program. What sizes are worked out by has none.
  std::map<std::pair<const Node*, uint32_t>, SizeNames> names = {};
};

// A graph that is not like the first one.
class UnlikeExample : public UserError {
 public:
  UnlikeExample(const std::string& what, size_t example) : UserError(what), example(example) {}
  size_t example;  // its number
};

// `closed`: sizes within the ranges at which the family does not hold. UnlikeExample as said;
// ExampleWanted where another example tells what a size is; UserError that lists all that follows
// from sizes in a way that is not known, by node.
Unified unify(const Family& family, const std::vector<Example>& examples,
              const std::set<SizeValues>& closed);

}  // namespace composit::onnx
