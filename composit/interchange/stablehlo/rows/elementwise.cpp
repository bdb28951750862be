#include <cmath>
#include <complex>
#include <numeric>

#include "composit/interchange/stablehlo/loops.h"
#include "composit/interchange/stablehlo/rows.h"
#include "composit/interchange/stablehlo/scalars.h"
#include "composit/ir/graph.h"
#include "composit/ops/native.h"

namespace composit::stablehlo {
namespace {

using F = Function;
using Types = std::vector<Type>;

// A number that takes part in promotion as its category alone, in the dtype of the tensor beside
// it.
LazyTensor beside(const LazyTensor& x, const LazyTensor& other) {
  if (!is_wrapped_number(x) || is_wrapped_number(other) || x.dtype() == other.dtype()) return x;
  const Array& value = x.node->attribute("value").as<Array>();
  const Type type = tensor_type(other.dtype(), {});
  if (is_complex(other.dtype()))
    return constant(array_of(type, elements<std::complex<double>>(value)));
  const bool fits = is_floating_point(other.dtype()) ||
                    (x.dtype() == DType::int64 && other.dtype() != DType::bool_);
  return fits && !is_complex(x.dtype()) ? constant(array_of(type, elements<double>(value))) : x;
}

// A function of one tensor, whose dtype is that of its result.
template <Function function>
LazyTensors of_one(const Call& call, const Types& results) {
  const LazyTensor& x = call.tensors().at(0);
  const DType dtype = results[0].dtype;
  const bool is_part = is_complex(x.dtype()) && !is_complex(dtype);  // abs, real, imag
  const bool same = x.dtype() == dtype || dtype == DType::bool_ || is_part;
  return same ? LazyTensors{apply(function, {x}, dtype)} : LazyTensors();
}

// Of two of one dtype; others are promoted by the definition.
template <Function function>
LazyTensors of_two(const Call& call, const Types& results) {
  const LazyTensor x = beside(call.tensors().at(0), call.tensors().at(1));
  const LazyTensor y = beside(call.tensors().at(1), call.tensors().at(0));
  if (x.dtype() != y.dtype()) return {};
  const bool makes = results[0].dtype == DType::bool_ || function == Function::complex;
  if (results[0].dtype != x.dtype() && !makes) return {};
  return {apply(function, {x, y}, results[0].dtype)};
}

// With a factor, which has to be 1.
template <Function function>
LazyTensors of_two_plain(const Call& call, const Types& results) {
  return real_of(call, "alpha") == 1 ? of_two<function>(call, results) : LazyTensors();
}

// Of any dtype: what is not 0 is true.
template <const char* op>
LazyTensors of_truths(const Call& call, const Types&) {
  const LazyTensor x = truth(call.tensors().at(0));
  if (call.tensors().size() == 1) return {unary(op, x)};
  return {binary(op, x, truth(call.tensors().at(1)))};
}

constexpr char kNot[] = "not", kAnd[] = "and", kOr[] = "or", kXor[] = "xor";

LazyTensors rounded_quotient(const Call& call, const Types& results) {
  const ArgumentValue& mode = call["rounding_mode"];
  if (mode.is_none()) return {};
  return mode.data().as<std::string>() == "floor" ? of_two<F::floor_divide>(call, results)
                                                  : of_two<F::trunc_divide>(call, results);
}

LazyTensors chosen(const Call& call, const Types& results) {
  const LazyTensor x = beside(call.tensors().at(1), call.tensors().at(2));
  const LazyTensor y = beside(call.tensors().at(2), call.tensors().at(1));
  if (x.dtype() != results[0].dtype || y.dtype() != results[0].dtype) return {};
  return {select(truth(call.tensors().at(0)), x, y)};
}

LazyTensors converted(const Call& call, const Types& results) {
  const LazyTensor& x = call.tensors().at(0);
  if (results[0].dtype == DType::bool_) return {truth(x)};
  return {cast_to(x, results[0].dtype)};
}

LazyTensors clamped(const Call& call, const Types& results) {
  LazyTensor x = tensor_of(call, "self");
  if (x.dtype() != results[0].dtype || x.dtype() == DType::bool_) return {};
  const auto bound = [&](std::string_view name) { return number(real_of(call, name), x.dtype()); };
  if (!call["min"].is_none()) x = binary("maximum", x, bound("min"));
  if (!call["max"].is_none()) x = binary("minimum", x, bound("max"));
  return {x};
}

// The sum of (q + k)^-s for k = 0, 1, …: term by term until q is above 0, which XLA's operator asks
// for.
LazyTensor zeta_of(const LazyTensor& s, const LazyTensor& q) {
  const Dims sizes = broadcast(s.sizes(), q.sizes());
  const LazyTensor order = broadcast_to(s, sizes);
  const auto is_low = [](const LazyTensor& x) { return compare("LE", x, like(0, x)); };
  std::vector<int64_t> axes(sizes.size());
  std::iota(axes.begin(), axes.end(), 0);
  const LazyTensors end = while_loop(
      {broadcast_to(q, sizes), filled(0, q.dtype(), sizes)}, {order},
      [&](const LazyTensors& in) {
        return reduced("or", is_low(in[0]), number(0, DType::bool_), axes, false);
      },
      [&](const LazyTensors& in) {
        const LazyTensor low = is_low(in[0]);
        const LazyTensor term = binary("power", in[0], unary("negate", in[2]));
        return LazyTensors{select(low, binary("add", in[0], like(1, in[0])), in[0]),
                           select(low, binary("add", in[1], term), in[1])};
      });
  return binary("add", end[1], binary("zeta", order, end[0]));
}

LazyTensors polygamma(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const auto order = static_cast<double>(int_of(call, "n"));
  if (x.dtype() != results[0].dtype) return {};
  if (order == 0) return {unary("digamma", x)};
  // (-1)^(n + 1) n! zeta(n + 1, x)
  const double factor = std::tgamma(order + 1) * (std::fmod(order, 2) == 0 ? -1 : 1);
  return {binary("multiply", like(factor, x), zeta_of(like(order + 1, x), x))};
}

LazyTensors zeta(const Call& call, const Types& results) {
  const LazyTensor &x = call.tensors().at(0), &q = call.tensors().at(1);
  if (x.dtype() != results[0].dtype || q.dtype() != x.dtype()) return {};
  return {zeta_of(x, q)};
}

// Euclid's algorithm on all pairs at once.
LazyTensors gcd(const Call& call, const Types& results) {
  const LazyTensor &a = call.tensors().at(0), &b = call.tensors().at(1);
  if (a.dtype() != results[0].dtype || b.dtype() != a.dtype()) return {};
  const Dims& sizes = results[0].sizes;
  std::vector<int64_t> axes(sizes.size());
  std::iota(axes.begin(), axes.end(), 0);
  const auto size = [&](const LazyTensor& x) {
    return apply(F::abs, {broadcast_to(x, sizes)}, x.dtype());
  };
  const LazyTensors end = while_loop(
      {size(a), size(b)}, {},
      [&](const LazyTensors& in) {
        return reduced("or", truth(in[1]), number(0, DType::bool_), axes, false);
      },
      [&](const LazyTensors& in) {
        const LazyTensor more = truth(in[1]);
        const LazyTensor divisor = select(more, in[1], like(1, in[1]));
        return LazyTensors{select(more, in[1], in[0]),
                           select(more, binary("remainder", in[0], divisor), in[1])};
      });
  return {end[0]};
}

}  // namespace

void add_elementwise_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::abs", of_one<F::abs>},
                           {"aten::sign", of_one<F::sign>},
                           {"aten::neg", of_one<F::neg>},
                           {"aten::exp", of_one<F::exp>},
                           {"aten::exp2", of_one<F::exp2>},
                           {"aten::expm1", of_one<F::expm1>},
                           {"aten::log", of_one<F::log>},
                           {"aten::log2", of_one<F::log2>},
                           {"aten::log10", of_one<F::log10>},
                           {"aten::log1p", of_one<F::log1p>},
                           {"aten::sqrt", of_one<F::sqrt>},
                           {"aten::rsqrt", of_one<F::rsqrt>},
                           {"aten::sin", of_one<F::sin>},
                           {"aten::cos", of_one<F::cos>},
                           {"aten::tan", of_one<F::tan>},
                           {"aten::asin", of_one<F::asin>},
                           {"aten::acos", of_one<F::acos>},
                           {"aten::atan", of_one<F::atan>},
                           {"aten::sinh", of_one<F::sinh>},
                           {"aten::cosh", of_one<F::cosh>},
                           {"aten::tanh", of_one<F::tanh>},
                           {"aten::asinh", of_one<F::asinh>},
                           {"aten::acosh", of_one<F::acosh>},
                           {"aten::atanh", of_one<F::atanh>},
                           {"aten::erf", of_one<F::erf>},
                           {"aten::erfc", of_one<F::erfc>},
                           {"aten::erfinv", of_one<F::erfinv>},
                           {"aten::lgamma", of_one<F::lgamma>},
                           {"aten::digamma", of_one<F::digamma>},
                           {"aten::polygamma", polygamma},
                           {"composit::gcd", gcd},
                           {"aten::floor", of_one<F::floor>},
                           {"aten::ceil", of_one<F::ceil>},
                           {"aten::round", of_one<F::round>},
                           {"aten::trunc", of_one<F::trunc>},
                           {"aten::isnan", of_one<F::isnan>},
                           {"aten::bitwise_not", of_one<F::bitwise_not>},
                           {"aten::real", of_one<F::real>},
                           {"aten::imag", of_one<F::imag>},
                           {"aten::conj_physical", of_one<F::conj>},
                           {"aten::complex", of_two<F::complex>},
                           {"aten::add.Tensor", of_two_plain<F::add>},
                           {"aten::sub.Tensor", of_two_plain<F::sub>},
                           {"aten::mul.Tensor", of_two<F::mul>},
                           {"aten::div.Tensor", of_two<F::div>},
                           {"aten::div.Tensor_mode", rounded_quotient},
                           {"aten::minimum", of_two<F::min>},
                           {"aten::maximum", of_two<F::max>},
                           {"aten::pow.Tensor_Tensor", of_two<F::pow>},
                           {"aten::atan2", of_two<F::atan2>},
                           {"aten::copysign.Tensor", of_two<F::copysign>},
                           {"aten::hypot", of_two<F::hypot>},
                           {"aten::nextafter", of_two<F::nextafter>},
                           {"aten::special_zeta", zeta},
                           {"aten::remainder.Tensor", of_two<F::remainder>},
                           {"aten::fmod.Tensor", of_two<F::fmod>},
                           {"aten::lt.Tensor", of_two<F::lt>},
                           {"aten::le.Tensor", of_two<F::le>},
                           {"aten::gt.Tensor", of_two<F::gt>},
                           {"aten::ge.Tensor", of_two<F::ge>},
                           {"aten::eq.Tensor", of_two<F::eq>},
                           {"aten::ne.Tensor", of_two<F::ne>},
                           {"aten::bitwise_and.Tensor", of_two<F::bitwise_and>},
                           {"aten::bitwise_or.Tensor", of_two<F::bitwise_or>},
                           {"aten::bitwise_xor.Tensor", of_two<F::bitwise_xor>},
                           {"aten::bitwise_left_shift.Tensor", of_two<F::shift_left>},
                           {"aten::bitwise_right_shift.Tensor", of_two<F::shift_right>},
                           {"aten::logical_not", of_truths<kNot>},
                           {"aten::logical_and", of_truths<kAnd>},
                           {"aten::logical_or", of_truths<kOr>},
                           {"aten::logical_xor", of_truths<kXor>},
                           {"aten::where.self", chosen},
                           {"aten::clamp", clamped},
                           {"aten::_to_copy", converted},
                           {"aten::to.dtype", converted}});
}

}  // namespace composit::stablehlo
