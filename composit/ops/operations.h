// All operations composit knows, and calls of them that make nodes.
//
//   LazyTensor y = apply("aten::relu", {x})[0];
//   add_operation({.schema = "mine::twice(Tensor x) -> Tensor",
//                  .scalar = [](Expr x) { return 2 * x; }});
//
// Rows are in composit/ops/rows, one file per family; each adds its rows in a function that CMake
// lists, so that nothing depends on static initialisation.
#pragma once

#include <string_view>
#include <vector>

#include "composit/op/operation.h"

namespace composit {

// Built on first use. The operations found stay valid and unchanged until the process ends.
const Operation* find_operation(Symbol name);
// The operation that defines a node. For an in-place operator it is made of the row of the
// functional form. nullptr if the operands are views of the same memory, or if the operator threw.
const Operation* operation_of(const Node& node);
// In alphabetical order.
std::vector<const Operation*> all_operations();
// A row of your own. UserError as for OperationTable::add. Thread-safe.
void add_operation(Row row);

// The operation of `name`. UserError: "composit has no operation 'aten::foo'; …".
const Operation& operation_named(std::string_view name);

// Results of a new node, its types inferred. UserError as in `infer`, or for a name without row.
LazyTensors apply(std::string_view name, std::vector<ArgumentValue> arguments);

}  // namespace composit
