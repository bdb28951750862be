// NumPy's dtype rules: NEP 50 promotion, and what kinds of functions make of a dtype
// (https://numpy.org/neps/nep-0050-scalar-promotion.html).
//
//   result_type(DType::int64, DType::float32) == DType::float64;
//   result_type("add", {x, 2.5});                                  // a number is weak
#pragma once

#include <string_view>
#include <vector>

#include "composit/numpy/ndarray.h"
#include "composit/ops/functions.h"

namespace composit::numpy {

// numpy.promote_types. UserError for dtypes that composit does not compute with.
DType result_type(DType a, DType b);
// numpy.result_type of arrays and numbers; at least one is an array. `function` names the caller in
// the UserError for an integer that has no place in the result: "[numpy.add] …".
DType result_type(std::string_view function, const std::vector<Operand>& operands);

// The dtype in which a NumPy function computes that has no loop for `dtype`: the next one that has
// a loop.
DType number_dtype(DType dtype);   // bool becomes int8
DType inexact_dtype(DType dtype);  // int8 becomes float16, int16 float32, wider ones float64
DType divided_dtype(DType dtype);  // integers and bool become float64
DType total_dtype(DType dtype);    // integers and bool become the widest of their sign

// `operand` as an argument of an operation that computes in `dtype`: an array is cast; a number
// stays one, as it takes the dtype of the array beside it.
ArgumentValue argument(const Operand& operand, DType dtype);
// The same as an array: a number becomes a zero-dimensional one.
NdArray as_array(const Operand& operand, DType dtype);

// The only result of an operation, called in the name of a function:
// "[numpy.add] in aten::add.Tensor: sizes [2] do not broadcast with [3]".
NdArray call_as(std::string_view function, std::string_view op,
                std::vector<ArgumentValue> arguments);

// UserErrors: "[numpy.sign] expected numbers, received bool", "… real numbers, received complex64".
void expect_no_bool(std::string_view function, DType dtype);
void expect_real(std::string_view function, DType dtype);

}  // namespace composit::numpy
