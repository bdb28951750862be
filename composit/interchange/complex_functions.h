// Functions of complex numbers by their real and imaginary parts.
//
//   const Pair product = *applied_to_parts(Function::mul, {a, b});
#pragma once

#include <optional>
#include <vector>

#include "composit/ir/node.h"
#include "composit/op/scalar_function.h"

namespace composit::interchange {

// A complex tensor, or a real one, which has no imaginary part.
struct Pair {
  LazyTensor real, imaginary = {};
  bool is_complex() const { return imaginary.defined(); }
};

// Of operands that broadcast, complex all of them; a pair without imaginary part where the function
// gives real numbers or bools. Nothing for a function that has no such form. Formulas are torch's
// where it has its own (division, square roots), so that infinities stay what they are.
std::optional<Pair> applied_to_parts(Function function, const std::vector<Pair>& operands);

}  // namespace composit::interchange
