// The reference interpreter of loop forms: slow, obviously right, and the oracle of generated code.
//
//   std::vector<Array> results = evaluate(loops, {x, weight});
//
// Semantics are those of composit/op/loops.h. Sums and products of floats are accumulated in double
// (complex128) and rounded once; every other arithmetic is done in the dtype that expressions say.
#pragma once

#include <vector>

#include "composit/ir/array.h"
#include "composit/op/loops.h"

namespace composit {

// Operands have dtypes and sizes of `loops.operands`, and any strides; results are contiguous.
// UserError where an index that is needed is out of range ("index 7 is out of range for axis 0 of
// size 5") and where an integer is divided by zero.
std::vector<Array> evaluate(const Loops& loops, const std::vector<Array>& operands);

}  // namespace composit
