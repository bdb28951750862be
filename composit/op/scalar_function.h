// The functions of scalars that expressions are made of, as one table: name, number of arguments,
// which dtypes they take and give. Values are in composit/eval, derivatives in composit/ad.
//
//   const FunctionInfo& info = info_of(Function::exp);      // info.name == "exp"
//   function_from_name("floor_divide") == Function::floor_divide;
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace composit {

// clang-format off
// Functions that rows call by name, and so does the text of expressions.
#define COMPOSIT_FOR_EACH_NAMED_FUNCTION(unary, binary)                                            \
  unary(abs) unary(sign) unary(exp) unary(exp2) unary(expm1) unary(log) unary(log2) unary(log10)   \
  unary(log1p) unary(sqrt) unary(rsqrt) unary(sin) unary(cos) unary(tan) unary(asin) unary(acos)   \
  unary(atan) unary(sinh) unary(cosh) unary(tanh) unary(asinh) unary(acosh) unary(atanh)           \
  unary(erf) unary(erfc) unary(erfinv) unary(lgamma) unary(digamma) unary(floor) unary(ceil)       \
  unary(round) unary(trunc) unary(isnan) unary(bitwise_not) unary(real) unary(imag) unary(conj)    \
  binary(min) binary(max) binary(pow) binary(atan2) binary(floor_divide) binary(trunc_divide)      \
  binary(remainder) binary(fmod) binary(nextafter) binary(hypot) binary(copysign) binary(complex)  \
  binary(bitwise_and) binary(bitwise_or) binary(bitwise_xor) binary(shift_left)                    \
  binary(shift_right) binary(polygamma) binary(zeta)
// clang-format on

// All functions: those above, operators, `select`, `cast`.
enum class Function : uint8_t {
#define COMPOSIT_NAME(name) name,
  COMPOSIT_FOR_EACH_NAMED_FUNCTION(COMPOSIT_NAME, COMPOSIT_NAME)
#undef COMPOSIT_NAME
  // clang-format off
  neg, add, sub, mul, div, lt, le, gt, ge, eq, ne, logical_and, logical_or, logical_not, select,
  // clang-format on
  cast,  // to the dtype of the call
  count_
};

// The rule for the dtype of a function's result. Arguments are promoted to a common dtype first.
enum class FunctionDType : uint8_t {
  same,           // any number, and gives the same
  number,         // the same, but for bool
  real,           // no complex number
  to_float,       // floats and complex numbers; integers become the default float
  to_real_float,  // floats; integers become the default float
  integer,        // integers and bool
  magnitude,      // same, but a complex number becomes its real dtype
  comparison,     // gives bool
  order,          // gives bool, no complex number
  logical,        // takes and gives bool
  special         // select, cast, complex
};

// The properties of a function.
struct FunctionInfo {
  std::string_view name;     // "floor_divide"
  size_t arity;              // number of arguments
  FunctionDType dtype;       // which dtypes it takes and gives
  std::string_view op = "";  // as written between arguments, or before the only one
  int precedence = 0;        // C++'s, higher binds closer
};

// The row of a function.
const FunctionInfo& info_of(Function function);
// The inverse of `info_of(function).name`; nothing for other text.
std::optional<Function> function_from_name(std::string_view name);

}  // namespace composit
