// Compares arrays up to rounding. The tolerances of all tests that compare with
// torch or NumPy are here; where another one stands in a test, it says why.
//
//   EXPECT_EQ(difference(ours, torch), "");
//   EXPECT_EQ(difference(ours, torch, 4), "");                  // of a chain of operations
#pragma once

#include <string>
#include <vector>

#include "composit/ir/array.h"

namespace composit::test {

// Relative and absolute; the absolute one in units of the largest finite element, if that is more
// than 1.
struct Tolerance {
  double relative, absolute;
};

// For one operation: a few units in the last place, and what sums in another order make of it.
// Integers and bools must be equal.
Tolerance tolerance_of(DType dtype);

// Empty, or where they differ first: "elem 3: expected 1.25, received 1.5". Dtypes and sizes must
// agree, strides need not.
std::string difference(const Array& ours, const Array& expected, Tolerance tolerance);
// To so many times the tolerance of their dtype.
std::string difference(const Array& ours, const Array& expected, double times = 1);

// The same for lists of results: "result 1: elem 3: …".
std::string differences(const std::vector<Array>& ours, const std::vector<Array>& expected,
                        double times = 1);

// "float32[2, 3]".
std::string type_text(const Type& type);

}  // namespace composit::test
