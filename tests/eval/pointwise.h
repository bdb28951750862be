// Loop forms point by point: the header of composit/op/loops.h read aloud. Another interpreter,
// slow and without blocks, to compare composit/eval with. An expression has a value where it folds
// to a literal once its leaves are literals.
#pragma once

#include <vector>

#include "composit/ir/array.h"
#include "composit/op/loops.h"

namespace composit {

// Elements of the results in row-major order. Operands are contiguous, of float32, float64, int64
// and uint8.
std::vector<std::vector<double>> pointwise(const Loops& loops, const std::vector<Array>& operands);

// Elements of a contiguous array of one of these dtypes.
std::vector<double> elements(const Array& array);

}  // namespace composit
