// Elements of arrays as numbers of one type: to read results, to make inputs, for native rows.
//
//   std::vector<double> x = elements<double>(array);     Array y = array_of(type, x);
#pragma once

#include <vector>

#include "composit/ir/array.h"

namespace composit {

// All elements in row-major order. T: double, int64_t or std::complex<double>; as numbers that are
// not complex, of complex ones the real part.
template <class T>
std::vector<T> elements(const Array& array);
// A contiguous array of `type.dtype`; as many values as `type` has elements.
template <class T>
Array array_of(const Type& type, const std::vector<T>& values);

}  // namespace composit
