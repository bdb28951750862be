// Functions of literals, and the few simplifications that hold for every value, NaN, infinities and
// signed zeros included. Applied whenever an expression is made.
#pragma once

#include <vector>

#include "composit/op/expr.h"

namespace composit {

// `value` as a number of `dtype`: C++'s conversions, integers wrapped to the dtype's width, floats
// rounded to it. Floats that an integer has no room for, and NaN, convert as on x86: to the least
// int64, or to the low bits of the least int32 in dtypes of up to 32 bits with a sign or 16
// without.
Scalar::Value converted(const Scalar::Value& value, DType dtype);

// `function` of `arguments`, all cast to its operand dtype; absent where it stays a call.
Expr fold(Function function, const std::vector<Expr>& arguments, DType result);

}  // namespace composit
