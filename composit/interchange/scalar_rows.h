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
// The rule of such a row for two operands.
LazyTensors applied_to_two(const Call& call, const std::vector<Type>& results, Function function,
                           ApplyFunction apply);

// A number that takes part in promotion as its category alone, in the dtype of the tensor beside
// it.
LazyTensor beside(const LazyTensor& x, const LazyTensor& other);

}  // namespace composit::interchange
