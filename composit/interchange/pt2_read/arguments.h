// Arguments of operators, from their JSON to values for a call.
//
//   std::vector<ArgumentValue> values = bound(schema, node["inputs"], value_of);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "composit/interchange/pt2_read/json.h"
#include "composit/op/call.h"
#include "composit/op/schema.h"

namespace composit::pt2_read {

// The value of this name: a tensor, or a number that follows from sizes. UserError: there is none.
using ValueOf = std::function<const ArgumentValue&(const std::string& name)>;

// One argument: {"as_tensor": {"name"}}, {"as_ints": […]}, … UserError for a kind that no operator
// here has.
ArgumentValue argument_value(const Json& argument, const ValueOf& value_of);

// The arguments of a call in the order of the schema, defaults in the place of those that the file
// leaves out. UserError for arguments that the schema does not have, or lacks.
std::vector<ArgumentValue> bound(const Schema& schema, const Json& inputs, const ValueOf& value_of);

}  // namespace composit::pt2_read
