// Special functions that the C++ standard library has not.
//
//   digamma(1.0) == -0.5772156649015329;   zeta(2.0, 1.0) == pi * pi / 6
//
// Accurate to a few units in the last place of a double, near a zero of digamma or of zeta to as
// much of the largest term: they are evaluated in long double. At poles and outside of the domain
// they give what torch gives, where that is the limit.
#pragma once

namespace composit {

// The y with erf(y) = x; infinite at -1 and 1, NaN outside.
double erfinv(double x);

// The derivative of ln(gamma(x)). At 0 an infinity with the sign opposite to zero's; NaN at the
// other poles -1, -2, … , where the sign depends on the side.
double digamma(double x);

// The n-th derivative of digamma, n = 0, 1, 2, …; NaN for another n.
double polygamma(double n, double x);

// Hurwitz' zeta function, the sum of (q + k)^-s over k = 0, 1, 2, … . Infinite for s = 1 and
// q = 0, -1, -2, … ; NaN for s < 1, and for q < 0 with an s that is no integer.
double zeta(double s, double q);

}  // namespace composit
