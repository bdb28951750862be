// Polynomials of a tensor's elements, and functions of one number as such.
//
//   LazyTensor y = interpolated(special_functions::i0e, 0, 30, 50, x);   // for 0 <= x <= 30
#pragma once

#include <functional>
#include <vector>

#include "composit/interchange/row.h"

namespace composit::interchange {

using RealFunction = std::function<double(double x)>;

// The polynomial with these coefficients, the lowest first.
LazyTensor polynomial(const std::vector<double>& coefficients, const LazyTensor& x);

// The polynomial of this degree that has the values of `f` at Chebyshev's points of
// [low, high]: of a smooth f, f itself to the precision of double there. It means nothing
// elsewhere. L. Trefethen, "Approximation Theory and Approximation Practice", chapter 3.
LazyTensor interpolated(const RealFunction& f, double low, double high, int degree,
                        const LazyTensor& x);
// The same of an even function, for |x| <= high: a polynomial of this degree of the square.
LazyTensor interpolated_even(const RealFunction& f, double high, int degree, const LazyTensor& x);

// A rule for a function of one number that is computed in float64.
template <LazyTensor (*function)(const LazyTensor& x)>
LazyTensors in_double(const Call& call, const std::vector<Type>& results);

LazyTensor in_float64(const LazyTensor& x);
LazyTensor in_dtype(const LazyTensor& x, DType dtype);

template <LazyTensor (*function)(const LazyTensor& x)>
LazyTensors in_double(const Call& call, const std::vector<Type>& results) {
  return {in_dtype(function(in_float64(call.tensors().at(0))), results[0].dtype)};
}

}  // namespace composit::interchange
