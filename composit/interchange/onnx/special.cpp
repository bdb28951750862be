#include "composit/interchange/onnx/special.h"

#include <cmath>
#include <limits>
#include <vector>

#include "composit/interchange/onnx/scalars.h"

namespace composit::onnx {
namespace {

using X = const LazyTensor&;

constexpr double kPi = 3.14159265358979323846, kInfinity = HUGE_VAL;

LazyTensor as(double value, X x) { return number(value, x.dtype()); }
LazyTensor plus(X x, X y) { return binary("Add", x, y); }
LazyTensor minus(X x, X y) { return binary("Sub", x, y); }
LazyTensor times(X x, X y) { return binary("Mul", x, y); }
LazyTensor over(X x, X y) { return binary("Div", x, y); }

// The polynomial with these coefficients, the highest first.
LazyTensor polynomial(const std::vector<double>& coefficients, X x) {
  LazyTensor value = as(coefficients[0], x);
  for (size_t i = 1; i < coefficients.size(); ++i)
    value = plus(times(value, x), as(coefficients[i], x));
  return value;
}

// How often an argument is moved up by 1, to where the asymptotic series are exact.
constexpr int kSteps = 10;

LazyTensor is_integer(X x) { return compare("Equal", unary("Floor", x), x); }
LazyTensor is_not_above_zero(X x) { return compare("LessOrEqual", x, as(0, x)); }

// x less the nearest integer, which is exact: the sine of pi x has its size, the tangent its value.
LazyTensor rest_of(X x) { return minus(x, unary("Round", x)); }

// Of x > 0: Stirling's series at x + 10, less the logarithms of the steps.
LazyTensor lgamma_above_zero(X x) {
  LazyTensor product = x, z = x;
  for (int i = 1; i < kSteps; ++i) product = times(product, plus(x, as(i, x)));
  z = plus(x, as(kSteps, x));
  const LazyTensor inverse = over(as(1, x), z), square = times(inverse, inverse);
  const LazyTensor series = times(
      inverse, polynomial({1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12}, square));
  const LazyTensor main = minus(times(minus(z, as(0.5, x)), unary("Log", z)), z);
  const LazyTensor high = plus(plus(main, as(0.5 * std::log(2 * kPi), x)), series);
  const LazyTensor large = compare("Greater", x, as(100, x));
  // Where the product would be infinite, x itself is large enough.
  const LazyTensor low = minus(high, unary("Log", where(large, as(1, x), product)));
  const LazyTensor own = over(as(1, x), where(large, x, as(1, x)));
  const LazyTensor far = plus(
      plus(minus(times(minus(x, as(0.5, x)), unary("Log", x)), x), as(0.5 * std::log(2 * kPi), x)),
      times(own, as(1.0 / 12, x)));
  return where(large, far, low);
}

// Of x > 0.
LazyTensor digamma_above_zero(X x) {
  LazyTensor sum = over(as(1, x), x);
  for (int i = 1; i < kSteps; ++i) sum = plus(sum, over(as(1, x), plus(x, as(i, x))));
  const LazyTensor z = plus(x, as(kSteps, x)), inverse = over(as(1, x), z);
  const LazyTensor square = times(inverse, inverse);
  const LazyTensor series =
      times(square, polynomial({1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12}, square));
  const LazyTensor high = minus(minus(unary("Log", z), times(inverse, as(0.5, x))), series);
  return minus(high, sum);
}

}  // namespace

// By reflection below 0: log(pi / |sin(pi x)|) - lgamma(1 - x).
LazyTensor lgamma(X x) {
  const LazyTensor low = is_not_above_zero(x);
  const LazyTensor inside = where(low, minus(as(1, x), x), x);
  const LazyTensor value = lgamma_above_zero(inside);
  const LazyTensor pole = compare("And", low, is_integer(x));
  const LazyTensor rest = where(pole, as(0.5, x), rest_of(x));
  const LazyTensor sine = unary("Abs", unary("Sin", times(as(kPi, x), rest)));
  const LazyTensor reflected = minus(unary("Log", over(as(kPi, x), sine)), value);
  const LazyTensor result = where(low, where(pole, as(kInfinity, x), reflected), value);
  const LazyTensor infinite = compare("Equal", unary("Abs", x), as(kInfinity, x));
  return where(infinite, as(kInfinity, x), result);
}

// By reflection below 0: digamma(1 - x) - pi / tan(pi x); minus infinity at 0, none at other poles.
LazyTensor digamma(X x) {
  const LazyTensor low = is_not_above_zero(x);
  const LazyTensor inside = where(low, minus(as(1, x), x), x);
  const LazyTensor value = digamma_above_zero(inside);
  const LazyTensor pole = compare("And", low, is_integer(x));
  const LazyTensor rest = where(pole, as(0.25, x), rest_of(x));
  const LazyTensor angle = times(as(kPi, x), rest);
  const LazyTensor cotangent = over(unary("Cos", angle), unary("Sin", angle));
  const LazyTensor reflected = minus(value, times(as(kPi, x), cotangent));
  const LazyTensor zero = compare("Equal", x, as(0, x));
  const LazyTensor at_zero =
      apply(Function::copysign, {as(kInfinity, x), unary("Neg", x)}, x.dtype());
  const LazyTensor at_pole = where(zero, at_zero, as(std::numeric_limits<double>::quiet_NaN(), x));
  return where(low, where(pole, at_pole, reflected), value);
}

// M. Giles, Approximating the erfinv function (2010), in single precision; then Newton's steps.
LazyTensor erfinv(X x) {
  const LazyTensor one = as(1, x);
  const LazyTensor w = unary("Neg", unary("Log", times(minus(one, x), plus(one, x))));
  const LazyTensor central =
      polynomial({2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                  -0.00125372503, -0.00417768164, 0.246640727, 1.50140941},
                 minus(w, as(2.5, x)));
  const LazyTensor tail =
      polynomial({-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                  -0.0076224613, 0.00943887047, 1.00167406, 2.83297682},
                 minus(unary("Sqrt", w), as(3, x)));
  const LazyTensor is_edge = compare("Equal", unary("Abs", x), one);
  LazyTensor y = times(where(compare("Less", w, as(5, x)), central, tail), x);
  y = where(is_edge, as(0, x), y);
  for (int step = 0; step < 2; ++step) {
    const LazyTensor slope =
        times(as(2 / std::sqrt(kPi), x), unary("Exp", unary("Neg", times(y, y))));
    y = minus(y, over(minus(unary("Erf", y), where(is_edge, as(0, x), x)), slope));
  }
  return where(is_edge, times(x, as(kInfinity, x)), y);
}

// The arc tangent of the quotient, and the quadrant.
LazyTensor atan2(X y, X x) {
  const auto signed_as = [&](double value, X sign) {
    return apply(Function::copysign, {as(value, x), sign}, x.dtype());
  };
  const LazyTensor steep = compare("Less", unary("Abs", x), unary("Abs", y));
  const LazyTensor top = where(steep, x, y), bottom = where(steep, y, x);
  const LazyTensor is_zero = compare("Equal", bottom, as(0, x));
  // Infinite ones of one size: the quotient is 1 or -1.
  const LazyTensor alike = compare("Equal", unary("Abs", top), unary("Abs", bottom));
  const LazyTensor signs = times(unary("Sign", top), unary("Sign", bottom));
  const LazyTensor quotient = where(alike, signs, over(top, where(is_zero, as(1, x), bottom)));
  const LazyTensor angle = unary("Atan", quotient);
  // The sign bit of x, which is that of what has its sign.
  const LazyTensor left = compare("Less", signed_as(1, x), as(0, x));
  const LazyTensor turn = signed_as(kPi, y);
  const LazyTensor flat = where(left, plus(angle, turn), angle);
  const LazyTensor none = where(left, turn, signed_as(0, y));
  return where(is_zero, none, where(steep, minus(signed_as(kPi / 2, bottom), angle), flat));
}

}  // namespace composit::onnx
