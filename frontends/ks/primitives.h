// Helpers of the language's own functions, and the functions that the table in primitives.cpp
// names.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "frontends/ks/interpreter.h"

namespace flashlight::ks {

// UserError: "'add' expects two numbers of one type, received Float Integer".
[[noreturn]] void refuse(const PrimitiveCall& call, const std::string& expected);
// The arguments: written one after the other, or as a tuple.
Values arguments(const PrimitiveCall& call, size_t count, const char* expected);
const Closure& closure(const PrimitiveCall& call, const Value& value);

bool is_integer(const Value& value);
bool is_float(const Value& value);
bool is_bool(const Value& value);
Value integer(int64_t value);
// True if this holds for all that is no tuple and no tensor in a type.
bool has_only(const Type& type, const std::function<bool(const Type&)>& is);
bool has_only(const Type& type, Type::Kind kind);
// True for a value that has numbers, bools, strings or functions.
bool has_numbers(const Type& type);

// f of the numbers of two values of one form.
Value zip(const PrimitiveCall& call, const Value& x, const Value& y,
          const std::function<Expr(const Expr&, const Expr&)>& f);
// What stands for a number that is not there: NaN, or 0 of an Integer and a Bool.
Expr no_number(composit::DType dtype);
Value map_numbers(const Value& x, const std::function<Expr(const Expr&)>& f);

// arithmetic.cpp
Value binary(PrimitiveCall& call);
Value comparison(PrimitiveCall& call);
Value logic(PrimitiveCall& call);
Value negative(PrimitiveCall& call);
Value absolute(PrimitiveCall& call);
Value to_float(PrimitiveCall& call);
Value pi(PrimitiveCall& call);
Value largest(PrimitiveCall& call);
template <composit::Function kFunction>
Value of_float(PrimitiveCall& call) {
  const Value x = arguments(call, 1, "a Float")[0];
  const bool fits =
      is_float(x) || (x.is_tensor() && has_only(call.interpreter.type_of(x), Type::Kind::floating));
  if (!fits) refuse(call, "a Float");
  return map_numbers(x, [](const Expr& one) { return Expr::call(kFunction, {one}); });
}

// The sizes of a tensor: an Integer, or a tuple of them. What is not known is a length, at most the
// size beside it: UserError where no largest one is known.
struct Sizes {
  composit::Ints most;
  Index lengths;  // absent for those that are known; empty if all are
};
Sizes sizes(const PrimitiveCall& call, const Value& value);
// UserError, naming the function, where two tensors are not known to be of the same sizes.
void expect_same_sizes(const PrimitiveCall& call, const TensorValue& x, const TensorValue& y,
                       const char* expected);
// UserError, naming the function, for a ragged tensor.
void expect_not_ragged(const PrimitiveCall& call, const Value& value);
// A number where a condition, which may be absent, holds, else 0.
Value zero_outside(const Expr& inside, const Value& value);
// Indices as the program sees them: one Integer, or a tuple of several.
Value index_value(const Index& index);

// sparse.cpp
Value build_from_sparse(PrimitiveCall& call);
Value unzip(PrimitiveCall& call);
Value shape(PrimitiveCall& call);

// tensors.cpp
Value build(PrimitiveCall& call);
Value sumbuild(PrimitiveCall& call);
Value sum(PrimitiveCall& call);
Value size(PrimitiveCall& call);
Value index(PrimitiveCall& call);
Value map(PrimitiveCall& call);
Value const_vec(PrimitiveCall& call);
Value vec_init(PrimitiveCall& call);
Value delta(PrimitiveCall& call);
Value delta_vec(PrimitiveCall& call);
Value diagonal(PrimitiveCall& call);
Value fold(PrimitiveCall& call);

}  // namespace flashlight::ks
