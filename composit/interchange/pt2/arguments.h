// Arguments of operators as torch.export's JSON has them: one key that says the kind, and the
// value.
//
//   argument_json(schema.arguments[1], Attribute(int_list({2, 3})));   // {"as_ints": [2, 3]}
#pragma once

#include "composit/interchange/pt2/format.h"
#include "composit/ir/attribute.h"
#include "composit/op/schema.h"

namespace composit::pt2 {

// {"as_tensor": {"name": name}}
Json tensor_json(const std::string& name);
Json none_json();
// An argument of a node: by position, or by name.
Json positional(const std::string& name, Json value);
Json keyword(const std::string& name, Json value);
// {"as_int": 3}, {"as_float": 0.5}, …
Json number_json(const Scalar::Value& value);
// An argument that is no tensor. UserError for what the format cannot hold: a generator, a stream.
Json argument_json(const SchemaArgument& argument, const Attribute& value);

}  // namespace composit::pt2
