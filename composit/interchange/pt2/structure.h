// The structure of arguments and results, as saved captures have it, for torch's pytrees.
//
//   const Structure results = structure_of(R"({"tuple":["tensor",null]})", "", 1);
//   text_of_spec(results);                       // what torch calls a tree spec
//
// The text is JSON: "tensor", null, {"value": text}, [list], {"tuple": […]}, {"map": [[key,
// child]]}.
#pragma once

#include <string>
#include <vector>

#include "composit/interchange/pt2/format.h"

namespace composit::pt2 {

struct Structure {
  enum class Kind { tensor, constant, list, tuple, dict };
  Kind kind = Kind::tensor;
  Json constant = {};  // of a constant: {"as_int": 3}, {"as_none": true}
  std::vector<std::string> keys = {};
  std::vector<Structure> children = {};
};

// UserError for text that is no structure, or that has not so many tensors. Empty text: a tuple of
// `tensors`, or where there is one, itself.
Structure structure_of(const std::string& text, size_t tensors);
// Arguments as torch has them: a tuple of positional ones and a dict of keywords.
Structure call_structure(const std::string& text, size_t tensors);

// The leaves in order.
std::vector<const Structure*> leaves_of(const Structure& structure);
std::string text_of_spec(const Structure& structure);

}  // namespace composit::pt2
