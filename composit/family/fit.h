// Finds the formulas over sizes that give a list of integers, one per example.
//
//   fits({17, 24, 13}, leaves)[0].formula;     // size(%ids, 1) + 1, where that size is 16, 23, 12
#pragma once

#include <vector>

#include "composit/ir/size_formula.h"

namespace composit {

// A size that a formula may read, and its value in each example.
struct SizeLeaf {
  LazyTensor tensor;                 // whose size
  size_t axis = 0;                   // of which axis
  std::vector<int64_t> values = {};  // by example
  bool near = false;                 // of an operand of the node that has the integer
};

// How simple a formula is: the simplest that fits is taken.
enum class FitForm : uint8_t {
  size,       // size
  shifted,    // size + c
  multiple,   // c * size
  product,    // size * size
  sum,        // size + size, size - size
  affine,     // c * size + d
  scaled,     // c * size * size
  quotient,   // exact_div(size, c), div(size, c), ceil_div(size, c)
  remainder,  // mod(size, c), mod(-size, c)
  part,       // exact_div(size * size, c), div(size * size, c)
  fraction    // exact_div(c * size, d), div(c * size, d) where nothing else fits: a size times 1.5
};

struct Fit {
  SizeFormula formula;  // what gives the integers
  FitForm form;         // how simple it is
  bool near;            // it reads near leaves only
};

// All formulas of these forms that give `values`. Sizes of near leaves come first, then multiples
// and products of those, other sizes, what else is made of near leaves alone, and all others; each
// of these with the simplest form first, and for each form with the first leaves first. `values`
// are not all equal; leaves differ from each other in some example. Where a divisor divides the
// size in all examples, nobody knows how the program rounds: `exact_div`.
std::vector<Fit> fits(const std::vector<int64_t>& values, const std::vector<SizeLeaf>& leaves);

}  // namespace composit
