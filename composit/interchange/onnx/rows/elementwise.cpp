#include <algorithm>

#include "composit/interchange/onnx/rows.h"
#include "composit/interchange/onnx/scalars.h"
#include "composit/ops/native.h"

namespace composit::onnx {
namespace {

// A number that takes part in promotion as its category alone, in the dtype of the tensor beside
// it.
LazyTensor beside(const LazyTensor& x, const LazyTensor& other) {
  if (!is_wrapped_number(x) || is_wrapped_number(other) || x.dtype() == other.dtype()) return x;
  const bool fits =
      is_floating_point(other.dtype()) ||
      (x.dtype() == DType::int64 && other.dtype() != DType::bool_ && !is_complex(other.dtype()));
  if (!fits || is_complex(x.dtype())) return x;
  return constant(array_of(tensor_type(other.dtype(), {}),
                           elements<double>(x.node->attribute("value").as<Array>())));
}

// A function of one tensor, whose dtype is that of its result.
template <Function function>
LazyTensors of_one(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = call.tensors().at(0);
  if (is_complex(x.dtype())) return {};
  const bool same = x.dtype() == results[0].dtype || results[0].dtype == DType::bool_;
  return same ? LazyTensors{apply(function, {x}, results[0].dtype)} : LazyTensors();
}

// Of two of one dtype; others are promoted by the definition.
template <Function function>
LazyTensors of_two(const Call& call, const std::vector<Type>& results) {
  const LazyTensor x = beside(call.tensors().at(0), call.tensors().at(1));
  const LazyTensor y = beside(call.tensors().at(1), call.tensors().at(0));
  if (x.dtype() != y.dtype() || is_complex(x.dtype())) return {};
  if (results[0].dtype != x.dtype() && results[0].dtype != DType::bool_) return {};
  return {apply(function, {x, y}, results[0].dtype)};
}

// With a factor, which has to be 1.
template <Function function>
LazyTensors of_two_plain(const Call& call, const std::vector<Type>& results) {
  return real_of(call, "alpha") == 1 ? of_two<function>(call, results) : LazyTensors();
}

// Of any dtype: what is not 0 is true.
template <const char* op>
LazyTensors of_truths(const Call& call, const std::vector<Type>&) {
  const LazyTensor x = cast_to(call.tensors().at(0), DType::bool_);
  if (call.tensors().size() == 1) return {unary(op, x)};
  return {compare(op, x, cast_to(call.tensors().at(1), DType::bool_))};
}

constexpr char kNot[] = "Not", kAnd[] = "And", kOr[] = "Or", kXor[] = "Xor";

LazyTensors rounded_quotient(const Call& call, const std::vector<Type>& results) {
  const ArgumentValue& mode = call["rounding_mode"];
  if (mode.is_none()) return {};
  return mode.data().as<std::string>() == "floor" ? of_two<Function::floor_divide>(call, results)
                                                  : of_two<Function::trunc_divide>(call, results);
}

LazyTensors chosen(const Call& call, const std::vector<Type>& results) {
  const LazyTensor x = beside(call.tensors().at(1), call.tensors().at(2));
  const LazyTensor y = beside(call.tensors().at(2), call.tensors().at(1));
  if (x.dtype() != results[0].dtype || y.dtype() != results[0].dtype) return {};
  return {where(call.tensors().at(0), x, y)};
}

LazyTensors converted(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = call.tensors().at(0);
  if (is_complex(x.dtype()) || is_complex(results[0].dtype)) return {};
  return {cast_to(x, results[0].dtype)};
}

LazyTensors clamped(const Call& call, const std::vector<Type>& results) {
  LazyTensor x = tensor_of(call, "self");
  if (x.dtype() != results[0].dtype || x.dtype() == DType::bool_) return {};
  const auto bound = [&](std::string_view name) { return number(real_of(call, name), x.dtype()); };
  if (!call["min"].is_none()) x = apply(Function::max, {x, bound("min")}, x.dtype());
  if (!call["max"].is_none()) x = apply(Function::min, {x, bound("max")}, x.dtype());
  return {x};
}

}  // namespace

void add_elementwise_rows(std::vector<Row>& rows) {
  using F = Function;
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
                           {"aten::floor", of_one<F::floor>},
                           {"aten::ceil", of_one<F::ceil>},
                           {"aten::round", of_one<F::round>},
                           {"aten::trunc", of_one<F::trunc>},
                           {"aten::isnan", of_one<F::isnan>},
                           {"aten::bitwise_not", of_one<F::bitwise_not>},
                           {"aten::add.Tensor", of_two_plain<F::add>},
                           {"aten::sub.Tensor", of_two_plain<F::sub>},
                           {"aten::mul.Tensor", of_two<F::mul>},
                           {"aten::div.Tensor", of_two<F::div>},
                           {"aten::div.Tensor_mode", rounded_quotient},
                           {"aten::minimum", of_two<F::min>},
                           {"aten::maximum", of_two<F::max>},
                           {"aten::pow.Tensor_Tensor", of_two<F::pow>},
                           {"aten::atan2", of_two<F::atan2>},
                           {"aten::bitwise_left_shift.Tensor", of_two<F::shift_left>},
                           {"aten::bitwise_right_shift.Tensor", of_two<F::shift_right>},
                           {"aten::copysign.Tensor", of_two<F::copysign>},
                           {"aten::hypot", of_two<F::hypot>},
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
                           {"aten::logical_not", of_truths<kNot>},
                           {"aten::logical_and", of_truths<kAnd>},
                           {"aten::logical_or", of_truths<kOr>},
                           {"aten::logical_xor", of_truths<kXor>},
                           {"aten::where.self", chosen},
                           {"aten::clamp", clamped},
                           {"aten::_to_copy", converted},
                           {"aten::to.dtype", converted}});
}

}  // namespace composit::onnx
