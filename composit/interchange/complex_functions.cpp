#include "composit/interchange/complex_functions.h"

#include <cmath>
#include <map>

#include "composit/ops/functions.h"
#include "composit/passes/definition.h"

namespace composit::interchange {
namespace {

using P = const Pair&;
using One = Pair (*)(P x);
using Two = Pair (*)(P x, P y);

LazyTensor f(std::string_view op, const LazyTensor& x) { return apply_one(op, {x}); }
LazyTensor size_of(P x) { return apply_one("aten::hypot", {x.real, x.imaginary}); }
LazyTensor angle_of(P x) { return apply_one("aten::atan2", {x.imaginary, x.real}); }
LazyTensor with_sign(const LazyTensor& x, const LazyTensor& sign) {
  return apply_one("aten::copysign.Tensor", {x, sign});
}

Pair sum(P x, P y) { return {x.real + y.real, x.imaginary + y.imaginary}; }
Pair difference(P x, P y) { return {x.real - y.real, x.imaginary - y.imaginary}; }
Pair product(P x, P y) {
  return {x.real * y.real - x.imaginary * y.imaginary, x.real * y.imaginary + x.imaginary * y.real};
}

// R. Smith, "Algorithm 116: Complex division" (1962): scaled by the larger part of the divisor.
Pair quotient(P x, P y) {
  const LazyTensor wide = abs(y.real) >= abs(y.imaginary);
  const LazyTensor large = where(wide, y.real, y.imaginary),
                   small = where(wide, y.imaginary, y.real);
  const LazyTensor is_zero = logical_and(eq(y.real, 0), eq(y.imaginary, 0));
  const LazyTensor ratio = small / where(is_zero, 1, large);
  const LazyTensor scale = reciprocal(where(is_zero, abs(large), large + small * ratio));
  const LazyTensor real = where(wide, x.real + x.imaginary * ratio, x.real * ratio + x.imaginary);
  const LazyTensor imaginary =
      where(wide, x.imaginary - x.real * ratio, x.imaginary * ratio - x.real);
  return {real * scale, imaginary * scale};
}

Pair negative(P x) { return {-x.real, -x.imaginary}; }
Pair conjugate(P x) { return {x.real, -x.imaginary}; }
Pair times_i(P x) { return {-x.imaginary, x.real}; }
Pair by_i(P x) { return {x.imaginary, -x.real}; }

Pair exponential(P x) {
  const LazyTensor growth = exp(x.real);
  return {growth * cos(x.imaginary), growth * sin(x.imaginary)};
}
Pair logarithm(P x) { return {log(size_of(x)), angle_of(x)}; }

// The root of the size, and half of the angle, without cancellation.
Pair root(P x) {
  const LazyTensor main = sqrt((size_of(x) + abs(x.real)) * 0.5);
  const LazyTensor other =
      where(eq(main, 0), 0, abs(x.imaginary) / where(eq(main, 0), 1, main * 2));
  const LazyTensor is_left = x.real < 0;
  return {where(is_left, other, main), with_sign(where(is_left, main, other), x.imaginary)};
}

Pair sine(P x) {
  return {sin(x.real) * f("aten::cosh", x.imaginary), cos(x.real) * f("aten::sinh", x.imaginary)};
}
Pair cosine(P x) {
  return {cos(x.real) * f("aten::cosh", x.imaginary),
          -(sin(x.real) * f("aten::sinh", x.imaginary))};
}
Pair hyperbolic_sine(P x) { return by_i(sine(times_i(x))); }
Pair hyperbolic_cosine(P x) { return cosine(times_i(x)); }

// With t = tanh(a), s = tan(b): (t (1 + s^2) + i s (1 - t^2)) / (1 + t^2 s^2).
Pair hyperbolic_tangent(P x) {
  const LazyTensor t = tanh(x.real), s = f("aten::tan", x.imaginary);
  const LazyTensor scale = reciprocal(square(t * s) + 1);
  return {t * (square(s) + 1) * scale, s * (1 - square(t)) * scale};
}
Pair tangent(P x) { return by_i(hyperbolic_tangent(times_i(x))); }

Pair scaled(P x, double by) { return {x.real * by, x.imaginary * by}; }

Pair one_like(P x) { return {ones_like(x.real), zeros_like(x.real)}; }

// The number that all exponents are, where they are one real number.
std::optional<double> number_in(P y) {
  if (!is_filled_with(y.imaginary, 0)) return std::nullopt;
  for (const double number : {2.0, 3.0, 0.5, -1.0})
    if (is_filled_with(y.real, number)) return number;
  return std::nullopt;
}

Pair power(P x, P y) {
  if (const auto number = number_in(y)) {  // as torch does
    if (*number == 0.5) return root(x);
    if (*number == -1) return quotient(one_like(x), x);
    const Pair square = product(x, x);
    return *number == 2 ? square : product(square, x);
  }
  const Pair value = exponential(product(y, logarithm(x)));
  const LazyTensor is_zero = logical_and(eq(x.real, 0), eq(x.imaginary, 0));
  const LazyTensor by_zero = logical_and(eq(y.real, 0), eq(y.imaginary, 0));
  const LazyTensor of_zero = where(y.real > 0, zeros_like(y.real), std::nan(""));
  return {where(by_zero, 1, where(is_zero, of_zero, value.real)),
          where(by_zero, 0, where(is_zero, of_zero, value.imaginary))};
}

LazyTensor are_equal(P x, P y) {
  return logical_and(eq(x.real, y.real), eq(x.imaginary, y.imaginary));
}

const std::map<Function, One>& unary() {
  static const auto* table = new std::map<Function, One>{
      {Function::neg, negative},
      {Function::conj, conjugate},
      {Function::real, [](P x) { return Pair{x.real}; }},
      {Function::imag, [](P x) { return Pair{x.imaginary}; }},
      {Function::abs, [](P x) { return Pair{size_of(x)}; }},
      {Function::isnan, [](P x) { return Pair{logical_or(isnan(x.real), isnan(x.imaginary))}; }},
      {Function::exp, exponential},
      {Function::exp2, [](P x) { return exponential(scaled(x, std::log(2.0))); }},
      {Function::log, logarithm},
      {Function::log2, [](P x) { return scaled(logarithm(x), 1 / std::log(2.0)); }},
      {Function::log10, [](P x) { return scaled(logarithm(x), 1 / std::log(10.0)); }},
      {Function::sqrt, root},
      {Function::rsqrt, [](P x) { return quotient(one_like(x), root(x)); }},
      {Function::sin, sine},
      {Function::cos, cosine},
      {Function::tan, tangent},
      {Function::sinh, hyperbolic_sine},
      {Function::cosh, hyperbolic_cosine},
      {Function::tanh, hyperbolic_tangent}};
  return *table;
}

const std::map<Function, Two>& binary() {
  static const auto* table = new std::map<Function, Two>{
      {Function::add, sum},
      {Function::sub, difference},
      {Function::mul, product},
      {Function::div, quotient},
      {Function::pow, power},
      {Function::eq, [](P x, P y) { return Pair{are_equal(x, y)}; }},
      {Function::ne, [](P x, P y) { return Pair{logical_not(are_equal(x, y))}; }}};
  return *table;
}

}  // namespace

std::optional<Pair> applied_to_parts(Function function, const std::vector<Pair>& operands) {
  if (operands.size() == 1)
    if (const auto one = unary().find(function); one != unary().end())
      return one->second(operands[0]);
  if (operands.size() == 2)
    if (const auto two = binary().find(function); two != binary().end())
      return two->second(operands[0], operands[1]);
  return std::nullopt;
}

}  // namespace composit::interchange
