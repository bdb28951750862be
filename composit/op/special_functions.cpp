#include "composit/op/special_functions.h"

#include "composit/op/special_series.h"

namespace composit {

double erfinv(double x) { return special_functions::erfinv(x); }
double digamma(double x) { return special_functions::digamma(x); }
double polygamma(double n, double x) { return special_functions::polygamma(n, x); }
double zeta(double s, double q) { return special_functions::zeta(s, q); }

}  // namespace composit
