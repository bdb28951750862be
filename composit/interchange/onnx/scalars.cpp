#include "composit/interchange/onnx/scalars.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "composit/interchange/onnx/special.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit::onnx {
namespace {

using Unary = LazyTensor (*)(const LazyTensor& x);
using Binary = LazyTensor (*)(const LazyTensor& x, const LazyTensor& y);

LazyTensor like(double value, const LazyTensor& x) { return number(value, x.dtype()); }
bool is_real(const LazyTensor& x) { return is_floating_point(x.dtype()); }

LazyTensor add(const LazyTensor& x, const LazyTensor& y) { return binary("Add", x, y); }
LazyTensor sub(const LazyTensor& x, const LazyTensor& y) { return binary("Sub", x, y); }

double value_of(const LazyTensor& number) {
  return elements<double>(number.node->attribute("value").as<Array>())[0];
}

// onnxruntime makes a number that a product of matrices is scaled by an attribute of it, in
// float32: not so where it is there for each place of an axis.
LazyTensor exact(const LazyTensor& number, const LazyTensor& other) {
  const bool is_number = number.node->op() == ops::kConstant && number.rank() == 0;
  if (!is_number || number.dtype() != DType::float64 || other.rank() < 2) return number;
  Dims sizes = other.sizes();
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  for (auto size = sizes.begin(); size != sizes.end(); ++size)
    if (size != largest) *size = 1;
  return filled(value_of(number), DType::float64, sizes);
}

LazyTensor mul(const LazyTensor& x, const LazyTensor& y) {
  return binary("Mul", exact(x, y), exact(y, x));
}
LazyTensor div(const LazyTensor& x, const LazyTensor& y) { return binary("Div", x, exact(y, x)); }
LazyTensor negative(const LazyTensor& x) { return unary("Neg", x); }

// Exact for small x, where exp(x) - 1 is not: 2 t / (1 - t) with t = tanh(x / 2).
LazyTensor expm1(const LazyTensor& x) {
  const LazyTensor t = unary("Tanh", mul(x, like(0.5, x)));
  const LazyTensor near = div(mul(like(2, x), t), sub(like(1, x), t));
  const LazyTensor is_near = compare("Less", unary("Abs", x), like(0.5, x));
  return where(is_near, near, sub(unary("Exp", x), like(1, x)));
}

// x log(u) / (u - 1) with u = 1 + x as it is rounded (Kahan); x where u is 1.
LazyTensor log1p(const LazyTensor& x) {
  const LazyTensor u = add(x, like(1, x)), one = like(1, x);
  const LazyTensor is_one = compare("Equal", u, one);
  const LazyTensor step = where(is_one, one, sub(u, one));
  const LazyTensor exact = div(mul(x, unary("Log", u)), step);
  const LazyTensor infinite = unary("Log", u);  // at 0, at infinity: the quotient is not a number
  const LazyTensor is_finite = compare("Less", unary("Abs", infinite), like(80, x));
  return where(is_one, x, where(is_finite, exact, infinite));
}

LazyTensor truncated(const LazyTensor& x) {
  if (!is_real(x)) return x;
  return where(compare("Less", x, like(0, x)), unary("Ceil", x), unary("Floor", x));
}

LazyTensor fmod(const LazyTensor& x, const LazyTensor& y) {
  return call("Mod", {x, y}, {attribute("fmod", 1)},
              tensor_type(x.dtype(), broadcast(x.sizes(), y.sizes())));
}

// True where what a division towards zero leaves is on the other side of zero than the divisor.
LazyTensor is_below(const LazyTensor& rest, const LazyTensor& y) {
  const LazyTensor zero = like(0, rest);
  const LazyTensor apart =
      compare("Xor", compare("Less", rest, zero), compare("Less", y, like(0, y)));
  return compare("And", apart, unary("Not", compare("Equal", rest, zero)));
}

// Towards minus infinity; ONNX's division of integers goes towards zero.
LazyTensor floor_divide(const LazyTensor& x, const LazyTensor& y) {
  if (is_real(x)) return unary("Floor", div(x, y));
  const LazyTensor quotient = div(x, y), rest = sub(x, mul(quotient, y));
  return where(is_below(rest, y), sub(quotient, like(1, quotient)), quotient);
}

LazyTensor remainder(const LazyTensor& x, const LazyTensor& y) {
  if (is_real(x)) {
    const LazyTensor rest = fmod(x, y);
    return where(is_below(rest, y), add(rest, y), rest);
  }
  return call("Mod", {x, y}, {attribute("fmod", 0)},
              tensor_type(x.dtype(), broadcast(x.sizes(), y.sizes())));
}

LazyTensor bitwise(std::string_view logical, std::string_view op, const LazyTensor& x,
                   const LazyTensor& y) {
  return x.dtype() == DType::bool_ ? compare(logical, x, y) : binary(op, x, y);
}

// torch's sign of what is not a number is 0.
LazyTensor sign(const LazyTensor& x) {
  const LazyTensor plain = unary("Sign", x);
  if (!is_real(x)) return plain;
  const LazyTensor nan = call("IsNaN", {x}, {}, tensor_type(DType::bool_, x.sizes()));
  return where(nan, like(0, x), plain);
}

// The sign bit: of a zero, that of its reciprocal.
LazyTensor is_negative(const LazyTensor& x) {
  const LazyTensor zero = like(0, x);
  const LazyTensor behind = compare("Less", unary("Reciprocal", x), zero);
  return compare("Or", compare("Less", x, zero), compare("And", compare("Equal", x, zero), behind));
}

LazyTensor copysign(const LazyTensor& x, const LazyTensor& y) {
  const LazyTensor size = unary("Abs", x);
  return where(is_negative(y), negative(size), size);
}

// Scaled by the larger one, so that no square is infinite.
LazyTensor hypot(const LazyTensor& x, const LazyTensor& y) {
  const LazyTensor a = unary("Abs", x), b = unary("Abs", y);
  const LazyTensor large = binary("Max", a, b), small = binary("Min", a, b), zero = like(0, x);
  const LazyTensor is_zero = compare("Equal", large, zero);
  const LazyTensor ratio = div(small, where(is_zero, like(1, x), large));
  return mul(large, unary("Sqrt", add(mul(ratio, ratio), like(1, x))));
}

// The number of bits, and a shift that an integer takes: less than that.
LazyTensor bits_of(const LazyTensor& x) {
  return like(static_cast<double>(8 * item_size(x.dtype())), x);
}
LazyTensor is_shift(const LazyTensor& y) {
  return compare("And", compare("GreaterOrEqual", y, like(0, y)), compare("Less", y, bits_of(y)));
}

// 2^y where an integer has it.
LazyTensor power_of_two(const LazyTensor& y) {
  const LazyTensor most = sub(bits_of(y), like(2, y));
  const LazyTensor least = binary("Max", binary("Min", y, most), like(0, y));
  return binary("Pow", like(2, y), least);
}

// By as much as there are bits, or more, or by a number below 0: nothing remains.
LazyTensor shift_left(const LazyTensor& x, const LazyTensor& y) {
  const LazyTensor last = compare("Equal", y, sub(bits_of(y), like(1, y)));
  const LazyTensor product = mul(mul(x, power_of_two(y)), where(last, like(2, x), like(1, x)));
  return where(is_shift(y), product, like(0, x));
}

// The same, but for the sign.
LazyTensor shift_right(const LazyTensor& x, const LazyTensor& y) {
  const LazyTensor sign = where(compare("Less", x, like(0, x)), like(-1, x), like(0, x));
  const LazyTensor fits =
      compare("And", is_shift(y), compare("Less", y, sub(bits_of(y), like(1, y))));
  return where(fits, floor_divide(x, power_of_two(y)), sign);
}

const std::map<Function, Unary>& unary_functions() {
  static const auto* table = new std::map<Function, Unary>{
      {Function::abs, [](const LazyTensor& x) { return unary("Abs", x); }},
      {Function::sign, sign},
      {Function::neg, negative},
      {Function::exp, [](const LazyTensor& x) { return unary("Exp", x); }},
      {Function::exp2, [](const LazyTensor& x) { return binary("Pow", like(2, x), x); }},
      {Function::expm1, expm1},
      {Function::log, [](const LazyTensor& x) { return unary("Log", x); }},
      {Function::log2,
       [](const LazyTensor& x) { return mul(unary("Log", x), like(1 / std::log(2.0), x)); }},
      {Function::log10,
       [](const LazyTensor& x) { return mul(unary("Log", x), like(1 / std::log(10.0), x)); }},
      {Function::log1p, log1p},
      {Function::sqrt, [](const LazyTensor& x) { return unary("Sqrt", x); }},
      {Function::rsqrt, [](const LazyTensor& x) { return unary("Reciprocal", unary("Sqrt", x)); }},
      {Function::sin, [](const LazyTensor& x) { return unary("Sin", x); }},
      {Function::cos, [](const LazyTensor& x) { return unary("Cos", x); }},
      {Function::tan, [](const LazyTensor& x) { return unary("Tan", x); }},
      {Function::asin, [](const LazyTensor& x) { return unary("Asin", x); }},
      {Function::acos, [](const LazyTensor& x) { return unary("Acos", x); }},
      {Function::atan, [](const LazyTensor& x) { return unary("Atan", x); }},
      {Function::sinh, [](const LazyTensor& x) { return unary("Sinh", x); }},
      {Function::cosh, [](const LazyTensor& x) { return unary("Cosh", x); }},
      {Function::tanh, [](const LazyTensor& x) { return unary("Tanh", x); }},
      {Function::asinh, [](const LazyTensor& x) { return unary("Asinh", x); }},
      {Function::acosh, [](const LazyTensor& x) { return unary("Acosh", x); }},
      {Function::atanh, [](const LazyTensor& x) { return unary("Atanh", x); }},
      {Function::erf, [](const LazyTensor& x) { return unary("Erf", x); }},
      {Function::erfinv, erfinv},
      {Function::lgamma, lgamma},
      {Function::digamma, digamma},
      {Function::erfc, [](const LazyTensor& x) { return sub(like(1, x), unary("Erf", x)); }},
      {Function::floor, [](const LazyTensor& x) { return is_real(x) ? unary("Floor", x) : x; }},
      {Function::ceil, [](const LazyTensor& x) { return is_real(x) ? unary("Ceil", x) : x; }},
      {Function::round, [](const LazyTensor& x) { return is_real(x) ? unary("Round", x) : x; }},
      {Function::trunc, truncated},
      {Function::isnan,
       [](const LazyTensor&
              x) { return call("IsNaN", {x}, {}, tensor_type(DType::bool_, x.sizes())); }},
      {Function::logical_not, [](const LazyTensor& x) { return unary("Not", x); }},
      {Function::bitwise_not,
       [](const LazyTensor&
              x) { return unary(x.dtype() == DType::bool_ ? "Not" : "BitwiseNot", x); }},
      {Function::real, [](const LazyTensor& x) { return x; }},
      {Function::conj, [](const LazyTensor& x) { return x; }}};
  return *table;
}

const std::map<Function, Binary>& binary_functions() {
  using X = const LazyTensor&;
  static const auto* table = new std::map<Function, Binary>{
      {Function::add, add},
      {Function::sub, sub},
      {Function::mul, mul},
      {Function::div, div},
      {Function::min, [](X x, X y) { return binary("Min", x, y); }},
      {Function::max, [](X x, X y) { return binary("Max", x, y); }},
      {Function::copysign, copysign},
      {Function::hypot, hypot},
      {Function::pow, [](X x, X y) { return binary("Pow", x, y); }},
      {Function::atan2, atan2},
      {Function::shift_left, shift_left},
      {Function::shift_right, shift_right},
      {Function::floor_divide, floor_divide},
      {Function::trunc_divide, [](X x, X y) { return truncated(div(x, y)); }},
      {Function::remainder, remainder},
      {Function::fmod, fmod},
      {Function::lt, [](X x, X y) { return compare("Less", x, y); }},
      {Function::le, [](X x, X y) { return compare("LessOrEqual", x, y); }},
      {Function::gt, [](X x, X y) { return compare("Greater", x, y); }},
      {Function::ge, [](X x, X y) { return compare("GreaterOrEqual", x, y); }},
      {Function::eq, [](X x, X y) { return compare("Equal", x, y); }},
      {Function::ne, [](X x, X y) { return unary("Not", compare("Equal", x, y)); }},
      {Function::logical_and, [](X x, X y) { return compare("And", x, y); }},
      {Function::logical_or, [](X x, X y) { return compare("Or", x, y); }},
      {Function::bitwise_and, [](X x, X y) { return bitwise("And", "BitwiseAnd", x, y); }},
      {Function::bitwise_or, [](X x, X y) { return bitwise("Or", "BitwiseOr", x, y); }},
      {Function::bitwise_xor, [](X x, X y) { return bitwise("Xor", "BitwiseXor", x, y); }}};
  return *table;
}

// Runtimes have arithmetic for these; other integers go through int64, and back.
DType arithmetic_dtype(Function function, DType dtype) {
  const bool logical = function == Function::logical_and || function == Function::logical_or ||
                       function == Function::logical_not || function == Function::eq ||
                       function == Function::ne;
  if (logical || is_floating_point(dtype)) return dtype;
  const bool bits = function == Function::bitwise_and || function == Function::bitwise_or ||
                    function == Function::bitwise_xor || function == Function::bitwise_not;
  if (bits) return dtype;
  return dtype == DType::int32 ? dtype : DType::int64;
}

// From float to bool is "not 0" there as here; of what is not a number, too.
LazyTensor converted(const LazyTensor& x, DType dtype) { return cast_to(x, dtype); }

}  // namespace

LazyTensor apply(Function function, const LazyTensors& arguments, DType dtype) {
  if (is_complex(dtype) || is_complex(arguments[0].dtype()))
    throw UserError("ONNX's runtimes have no complex numbers");
  if (function == Function::cast) return converted(arguments[0], dtype);
  if (function == Function::select) return where(arguments[0], arguments[1], arguments[2]);
  const DType own = arguments[0].dtype(), wide = arithmetic_dtype(function, own);
  LazyTensors given;
  for (const LazyTensor& argument : arguments) given.push_back(cast_to(argument, wide));
  if (const auto one = unary_functions().find(function); one != unary_functions().end())
    return cast_to(one->second(given[0]), dtype);
  if (const auto two = binary_functions().find(function); two != binary_functions().end())
    return cast_to(two->second(given[0], given[1]), dtype);
  throw UserError("ONNX has no operator for '" + std::string(info_of(function).name) + "'");
}

}  // namespace composit::onnx
