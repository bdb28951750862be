// Functions of scalars as operators of ATen, and as rows of each target that has them on tensors.
//
//   operator_of(Function::add) == "aten::add.Tensor";
//   add_scalar_rows(rows, apply);                       // `apply`: the target's, on whole tensors
#pragma once

#include <set>
#include <string>
#include <vector>

#include "composit/interchange/row.h"
#include "composit/op/scalar_function.h"

namespace composit::interchange {

// The operator that computes a function of tensors of one dtype; empty where ATen has none of its
// own: select, cast, divisions that round, polygamma.
const std::string& operator_of(Function function);

// A function of tensors of one dtype, which broadcast, in a target's operators; gives `dtype`.
using ApplyFunction = LazyTensor (*)(Function function, const LazyTensors& arguments, DType dtype);

// A row for each function that has an operator, but for logical ones, whose operands have any
// dtype. Operands of other dtypes than the result are left to definitions.
void add_scalar_rows(std::vector<Row>& rows, ApplyFunction apply,
                     const std::set<Function>& except = {});
// Rows of div.Tensor_mode, clamp, where.self and the logical operators, whose operands have any
// dtype. `truth`: a tensor as bool.
void add_elementwise_rows(std::vector<Row>& rows, ApplyFunction apply,
                          LazyTensor (*truth)(const LazyTensor& x));

}  // namespace composit::interchange
