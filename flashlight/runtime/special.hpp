// Bessel's and Airy's functions, incomplete gammas and others, computed in double.
//
//   fl::each<special_functions::i0>(x, y);          // y = i0(x), for all elements
//   fl::each<special_functions::igamma>(a, x, y);   // y = igamma(a, x)
#pragma once

#include "composit/shipped/classical_functions.h"
#include "flashlight/runtime/flashlight.hpp"

namespace fl {

template <double (*kFunction)(double), class X, class Y, std::size_t kCount>
void each(const X (&x)[kCount], Y (&y)[kCount]) {
  for (std::size_t i = 0; i < kCount; ++i)
    y[i] = static_cast<detail::Computed<Y>>(kFunction(static_cast<double>(x[i])));
}

template <double (*kFunction)(double, double), class A, class X, class Y, std::size_t kCount>
void each(const A (&a)[kCount], const X (&x)[kCount], Y (&y)[kCount]) {
  for (std::size_t i = 0; i < kCount; ++i)
    y[i] = static_cast<detail::Computed<Y>>(
        kFunction(static_cast<double>(a[i]), static_cast<double>(x[i])));
}

}  // namespace fl
