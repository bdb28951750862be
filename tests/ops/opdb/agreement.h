// Whether two arrays are the same up to rounding.
#pragma once

#include <string>

#include "composit/ir/array.h"

namespace composit::opdb {

// Relative and absolute; the absolute one in units of the largest finite element, if that is more
// than 1.
struct Tolerance {
  double relative, absolute;
};
// Of one operation: a few units in the last place, and what sums in another order make of it.
// Integers and bools must be equal.
Tolerance tolerance_of(DType dtype);

// Empty, or where they differ first: "elem 3: ours 1.5, torch's 1.25". Dtypes and sizes must agree.
std::string difference(const Array& ours, const Array& torch, Tolerance tolerance);

}  // namespace composit::opdb
