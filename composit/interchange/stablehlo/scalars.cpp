#include "composit/interchange/stablehlo/scalars.h"

#include <cmath>
#include <map>
#include <string>

#include "composit/ir/error.h"

namespace composit::stablehlo {
namespace {

using X = const LazyTensor&;

bool is_floating(X x) { return is_floating_point(x.dtype()); }
bool is_unsigned(X x) { return name(x.dtype()).starts_with("uint") || x.dtype() == DType::bool_; }

LazyTensor add(X x, X y) { return binary("add", x, y); }
LazyTensor sub(X x, X y) { return binary("subtract", x, y); }
LazyTensor mul(X x, X y) { return binary("multiply", x, y); }
LazyTensor div(X x, X y) { return binary("divide", x, y); }
LazyTensor is_zero(X x) { return compare("EQ", x, like(0, x)); }
LazyTensor both(X x, X y) { return binary("and", x, y); }

// The size of a complex number is real.
LazyTensor absolute(X x) {
  if (is_unsigned(x)) return x;
  if (!is_complex(x.dtype())) return unary("abs", x);
  const DType part = x.dtype() == DType::complex128 ? DType::float64 : DType::float32;
  return call("abs", {x}, {}, tensor_type(part, x.sizes()));
}

LazyTensor part_of(std::string_view op, X x) {
  if (!is_complex(x.dtype())) return op == "real" ? x : filled(0, x.dtype(), x.sizes());
  const DType part = x.dtype() == DType::complex128 ? DType::float64 : DType::float32;
  return call(op, {x}, {}, tensor_type(part, x.sizes()));
}

LazyTensor complex_of(X real, X imaginary) {
  const DType dtype = real.dtype() == DType::float64 ? DType::complex128 : DType::complex64;
  const Dims sizes = broadcast(real.sizes(), imaginary.sizes());
  return call("complex", {broadcast_to(real, sizes), broadcast_to(imaginary, sizes)}, {},
              tensor_type(dtype, sizes));
}

LazyTensor conjugate(X x) {
  if (!is_complex(x.dtype())) return x;
  return complex_of(part_of("real", x), unary("negate", part_of("imag", x)));
}

// torch's sign of what is not a number is 0.
LazyTensor sign(X x) {
  if (is_unsigned(x)) return cast_to(compare("NE", x, like(0, x)), x.dtype());
  const LazyTensor plain = unary("sign", x);
  return is_floating(x) ? select(is_nan(x), like(0, x), plain) : plain;
}

LazyTensor truncated(X x) {
  if (!is_floating(x)) return x;
  const LazyTensor down = unary("floor", x), up = unary("ceil", x);
  return select(compare("LT", x, like(0, x)), up, down);
}

// Both or neither below 0.
LazyTensor of_one_sign(X x, X y) {
  return compare("EQ", compare("LT", x, like(0, x)), compare("LT", y, like(0, y)));
}

// The sign bit, also of zeros and of what is not a number.
LazyTensor is_negative(X x) {
  const size_t size = item_size(x.dtype());
  const DType bits = size == 8 ? DType::int64 : size == 4 ? DType::int32 : DType::int16;
  const LazyTensor number = call("bitcast_convert", {x}, {}, tensor_type(bits, x.sizes()));
  return compare("LT", number, like(0, number));
}

LazyTensor copysign(X x, X y) {
  const LazyTensor size = unary("abs", x);
  return select(is_negative(y), unary("negate", size), size);
}

// Python's: the rest has the sign of the divisor.
LazyTensor remainder(X x, X y) {
  const LazyTensor rest = binary("remainder", x, y);
  if (is_unsigned(x)) return rest;
  return select(binary("or", is_zero(rest), of_one_sign(rest, y)), rest, add(rest, y));
}

// As ATen computes it: from what the rest leaves, so that it agrees with the rest.
LazyTensor floor_divide(X x, X y) {
  if (is_unsigned(x)) return div(x, y);
  const LazyTensor rest = binary("remainder", x, y);
  const LazyTensor exact = binary("or", is_zero(rest), of_one_sign(rest, y));
  const LazyTensor quotient = div(sub(x, rest), y);
  const LazyTensor below = select(exact, quotient, sub(quotient, like(1, x)));
  if (!is_floating(x)) return below;
  const LazyTensor floor = unary("floor", below);
  const LazyTensor near =
      select(compare("GT", sub(below, floor), like(0.5, x)), add(floor, like(1, x)), floor);
  const LazyTensor plain = div(x, y);
  const LazyTensor result = select(is_zero(below), copysign(like(0, x), plain), near);
  return select(is_zero(y), plain, result);
}

// Scaled by the larger one, so that no square is infinite.
LazyTensor hypot(X x, X y) {
  const LazyTensor a = unary("abs", x), b = unary("abs", y);
  const LazyTensor large = binary("maximum", a, b), small = binary("minimum", a, b);
  const LazyTensor scale = select(is_zero(large), like(1, x), large);
  const LazyTensor ratio = div(small, scale);
  const LazyTensor plain = mul(large, unary("sqrt", add(mul(ratio, ratio), like(1, x))));
  const LazyTensor infinite = number(std::numeric_limits<double>::infinity(), x.dtype());
  const LazyTensor any = binary("or", compare("EQ", a, infinite), compare("EQ", b, infinite));
  return select(any, infinite, plain);
}

LazyTensor power(X x, X y) {
  if (is_floating(x) || is_complex(x.dtype())) return binary("power", x, y);
  // Of integers: 0 where the exponent is negative, but for 1 and -1.
  if (is_unsigned(x)) return binary("power", x, y);
  const LazyTensor one = like(1, x), minus = like(-1, x), zero = like(0, x);
  const LazyTensor odd = compare("NE", binary("and", y, one), zero);
  const LazyTensor unit = select(compare("EQ", x, one), one,
                                 select(compare("EQ", x, minus), select(odd, minus, one), zero));
  const LazyTensor negative = compare("LT", y, zero);
  return select(negative, unit, binary("power", x, select(negative, zero, y)));
}

LazyTensor shift_right(X x, X y) {
  return binary(is_unsigned(x) ? "shift_right_logical" : "shift_right_arithmetic", x, y);
}

template <const char* op>
LazyTensor named(X x) {
  return unary(op, x);
}

template <const char* op>
LazyTensor of_floats(X x) {
  return is_floating(x) ? unary(op, x) : x;
}

#define COMPOSIT_NAMES(f)                                                                         \
  f(exponential) f(exponential_minus_one) f(log) f(log_plus_one) f(sqrt) f(rsqrt) f(sine)         \
      f(cosine) f(tan) f(asin) f(acos) f(atan) f(sinh) f(cosh) f(tanh) f(asinh) f(acosh) f(atanh) \
          f(erf) f(erfc) f(erf_inv) f(lgamma) f(digamma) f(floor) f(ceil) f(round_nearest_even)   \
              f(negate)
#define COMPOSIT_NAME(name) constexpr char k_##name[] = #name;
COMPOSIT_NAMES(COMPOSIT_NAME)
#undef COMPOSIT_NAME
constexpr char k_not[] = "not";

using Unary = LazyTensor (*)(X x);
using Binary = LazyTensor (*)(X x, X y);

const std::map<Function, Unary>& unary_functions() {
  static const auto* table = new std::map<Function, Unary>{
      {Function::abs, absolute},
      {Function::sign, sign},
      {Function::neg, named<k_negate>},
      {Function::exp, named<k_exponential>},
      {Function::exp2, [](X x) { return binary("power", like(2, x), x); }},
      {Function::expm1, named<k_exponential_minus_one>},
      {Function::log, named<k_log>},
      {Function::log2, [](X x) { return div(unary("log", x), like(std::log(2.0), x)); }},
      {Function::log10, [](X x) { return div(unary("log", x), like(std::log(10.0), x)); }},
      {Function::log1p, named<k_log_plus_one>},
      {Function::sqrt, named<k_sqrt>},
      {Function::rsqrt, named<k_rsqrt>},
      {Function::sin, named<k_sine>},
      {Function::cos, named<k_cosine>},
      {Function::tan, named<k_tan>},
      {Function::asin, named<k_asin>},
      {Function::acos, named<k_acos>},
      {Function::atan, named<k_atan>},
      {Function::sinh, named<k_sinh>},
      {Function::cosh, named<k_cosh>},
      {Function::tanh, named<k_tanh>},
      {Function::asinh, named<k_asinh>},
      {Function::acosh, named<k_acosh>},
      {Function::atanh, named<k_atanh>},
      {Function::erf, named<k_erf>},
      {Function::erfc, named<k_erfc>},
      {Function::erfinv, named<k_erf_inv>},
      {Function::lgamma, named<k_lgamma>},
      {Function::digamma, named<k_digamma>},
      {Function::floor, of_floats<k_floor>},
      {Function::ceil, of_floats<k_ceil>},
      {Function::round, of_floats<k_round_nearest_even>},
      {Function::trunc, truncated},
      {Function::isnan, is_nan},
      {Function::logical_not, named<k_not>},
      {Function::bitwise_not, named<k_not>},
      {Function::real, [](X x) { return part_of("real", x); }},
      {Function::imag, [](X x) { return part_of("imag", x); }},
      {Function::conj, conjugate}};
  return *table;
}

const std::map<Function, Binary>& binary_functions() {
  static const auto* table = new std::map<Function, Binary>{
      {Function::add, add},
      {Function::sub, sub},
      {Function::mul, mul},
      {Function::div, div},
      {Function::min, [](X x, X y) { return binary("minimum", x, y); }},
      {Function::max, [](X x, X y) { return binary("maximum", x, y); }},
      {Function::pow, power},
      {Function::atan2, [](X x, X y) { return binary("atan2", x, y); }},
      {Function::floor_divide, floor_divide},
      {Function::trunc_divide, [](X x, X y) { return truncated(div(x, y)); }},
      {Function::remainder, remainder},
      {Function::fmod, [](X x, X y) { return binary("remainder", x, y); }},
      {Function::nextafter, [](X x, X y) { return binary("next_after", x, y); }},
      {Function::hypot, hypot},
      {Function::copysign, copysign},
      {Function::complex, complex_of},
      {Function::lt, [](X x, X y) { return compare("LT", x, y); }},
      {Function::le, [](X x, X y) { return compare("LE", x, y); }},
      {Function::gt, [](X x, X y) { return compare("GT", x, y); }},
      {Function::ge, [](X x, X y) { return compare("GE", x, y); }},
      {Function::eq, [](X x, X y) { return compare("EQ", x, y); }},
      {Function::ne, [](X x, X y) { return compare("NE", x, y); }},
      {Function::logical_and, both},
      {Function::logical_or, [](X x, X y) { return binary("or", x, y); }},
      {Function::bitwise_and, both},
      {Function::bitwise_or, [](X x, X y) { return binary("or", x, y); }},
      {Function::bitwise_xor, [](X x, X y) { return binary("xor", x, y); }},
      {Function::shift_left, [](X x, X y) { return binary("shift_left", x, y); }},
      {Function::shift_right, shift_right}};
  return *table;
}

}  // namespace

LazyTensor apply(Function function, const LazyTensors& arguments, DType dtype) {
  if (function == Function::cast) return cast_to(arguments[0], dtype);
  if (function == Function::select) return select(arguments[0], arguments[1], arguments[2]);
  if (const auto one = unary_functions().find(function); one != unary_functions().end())
    return cast_to(one->second(arguments[0]), dtype);
  if (const auto two = binary_functions().find(function); two != binary_functions().end())
    return cast_to(two->second(arguments[0], arguments[1]), dtype);
  throw UserError("StableHLO has no operator for '" + std::string(info_of(function).name) + "'");
}

}  // namespace composit::stablehlo
