// What values and functions are called: after modules, parameters and operations of the model.
//
//   name_of(node) == "query"          // the last operation of module "attention.self.query"
#pragma once

#include <string>
#include <string_view>

#include "composit/ir/node.h"

namespace flashlight::cpp {

// The name of a node's results by its operation: "softmax" of "aten::_softmax".
std::string name_of(const composit::Node& node);

// Whether a name of an argument is only its number.
bool is_number(std::string_view name);

}  // namespace flashlight::cpp
