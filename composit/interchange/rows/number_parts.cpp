// Divisors, exponents and neighbours of numbers.
#include <cmath>
#include <limits>

#include "composit/interchange/common_rows.h"
#include "composit/interchange/polynomials.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"

namespace composit::interchange {
namespace {

using X = const LazyTensor&;

// Euclid's algorithm on all pairs at once.
LazyTensors gcd(const Call& call, const std::vector<Type>& results) {
  const Dims& sizes = results[0].sizes;
  const auto size = [&](size_t i) {
    return abs(to(expand(call.tensors().at(i), sizes), DType::int64));
  };
  const LazyTensors end =
      while_loop([](const LazyTensors& in) { return apply_one("aten::any", {ne(in[1], 0)}); },
                 [](const LazyTensors& in) {
                   const LazyTensor more = ne(in[1], 0), divisor = where(more, in[1], 1);
                   const LazyTensor rest = apply_one("aten::remainder.Tensor", {in[0], divisor});
                   return LazyTensors{where(more, in[1], in[0]), where(more, rest, in[1])};
                 },
                 {size(0), size(1)});
  return {to(end[0], results[0].dtype)};
}

// In float32, or float64: the dtype that parts of x are computed in.
LazyTensor in_own_dtype(X x) {
  return to(x, x.dtype() == DType::float64 ? DType::float64 : DType::float32);
}

// x = mantissa 2^exponent with 1/2 <= |mantissa| < 1: multiplied by powers of 2 only, which is
// exact.
struct Parts {
  LazyTensor mantissa, exponent;  // of the dtype of x; 0 and what is not finite: as it is, and 0
};

Parts parts_of(X x) {
  const bool wide = x.dtype() == DType::float64;
  const int largest = wide ? 512 : 64;  // of the powers of 2 below the greatest number
  const LazyTensor is_plain =
      logical_and(ne(x, 0), abs(x) < std::numeric_limits<double>::infinity());
  LazyTensor rest = where(is_plain, x, 1.0), exponent = rest * 0;
  const auto move = [&](const LazyTensor& condition, int by) {
    rest = where(condition, rest * std::ldexp(1.0, -by), rest);
    exponent = where(condition, exponent + static_cast<double>(by), exponent);
  };
  move(abs(rest) < std::ldexp(1.0, wide ? -1000 : -110), wide ? -100 : -40);  // the least numbers
  for (int by = largest; by > 0; by /= 2) {
    move(abs(rest) >= std::ldexp(1.0, by), by);
    move(abs(rest) < std::ldexp(1.0, -by), -by);
  }
  move(abs(rest) >= 1, 1);
  move(abs(rest) < 0.5, -1);
  return {where(is_plain, rest, x), where(is_plain, exponent, 0.0)};
}

LazyTensors frexp(const Call& call, const std::vector<Type>& results) {
  const Parts parts = parts_of(in_own_dtype(call.tensors().at(0)));
  return {in_dtype(parts.mantissa, results[0].dtype), to(parts.exponent, results[1].dtype)};
}

// 2^exponent for integers, as a product of powers of 2.
LazyTensor power_of_two(X exponent) {
  LazyTensor result = exponent * 0 + 1, rest = abs(exponent);
  for (int by = exponent.dtype() == DType::float64 ? 1024 : 128; by > 0; by /= 2) {
    const LazyTensor has = rest >= static_cast<double>(by);
    // Halves, since the power itself is no number.
    const LazyTensor up = result * std::ldexp(1.0, by / 2) * std::ldexp(1.0, by - by / 2);
    const LazyTensor down = result * std::ldexp(1.0, -(by / 2)) * std::ldexp(1.0, by / 2 - by);
    result = where(has, where(exponent < 0, down, up), result);
    rest = where(has, rest - static_cast<double>(by), rest);
  }
  return result;
}

// The distance of neighbours is 2^(exponent - digits), half of that from a power of 2 to 0.
LazyTensors nextafter(const Call& call, const std::vector<Type>& results) {
  const DType dtype = results[0].dtype;
  const bool single = dtype == DType::float32;
  if (!single && dtype != DType::float64) return {};
  const Dims& sizes = results[0].sizes;
  const LazyTensor x = expand(to(call.tensors().at(0), dtype), sizes),
                   y = expand(to(call.tensors().at(1), dtype), sizes);
  const double infinity = std::numeric_limits<double>::infinity();
  const double least =
      single ? std::numeric_limits<float>::denorm_min() : std::numeric_limits<double>::denorm_min();
  const double most =
      single ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  const Parts parts = parts_of(x);
  const LazyTensor grows = where(x < 0, y<x, y> x);
  const LazyTensor is_edge = logical_and(logical_not(grows), eq(abs(parts.mantissa), 0.5));
  const double digits = single ? 24 : 53;
  const LazyTensor exponent = parts.exponent - digits - to(is_edge, dtype);
  const LazyTensor step = maximum(power_of_two(exponent), full({}, least, dtype));
  const LazyTensor size = abs(x), moved = where(grows, size + step, size - step);
  const LazyTensor inner = where(eq(size, infinity), most, moved);
  const LazyTensor away = where(x < 0, -inner, inner);
  const LazyTensor from_zero = where(y < 0, -least, full({}, least, dtype));
  const LazyTensor next = where(eq(x, 0), from_zero, away);
  const LazyTensor value = where(eq(x, y), y, next);
  return {where(logical_or(isnan(x), isnan(y)), x + y, value)};
}

}  // namespace

void add_number_part_rows(std::vector<Row>& rows) {
  rows.insert(
      rows.end(),
      {{"composit::gcd", gcd}, {"aten::frexp.Tensor", frexp}, {"aten::nextafter", nextafter}});
}

}  // namespace composit::interchange
