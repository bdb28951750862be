#include <algorithm>

#include "composit/interchange/onnx/rows.h"
#include "composit/interchange/onnx/scalars.h"
#include "composit/interchange/scalar_rows.h"
#include "composit/ops/native.h"

namespace composit::onnx {
namespace {

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
  const bool floors = mode.data().as<std::string>() == "floor";
  return interchange::applied_to_two(
      call, results, floors ? Function::floor_divide : Function::trunc_divide, apply);
}

LazyTensors chosen(const Call& call, const std::vector<Type>& results) {
  const LazyTensor x = interchange::beside(call.tensors().at(1), call.tensors().at(2));
  const LazyTensor y = interchange::beside(call.tensors().at(2), call.tensors().at(1));
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
  interchange::add_scalar_rows(rows, apply,
                               {Function::complex, Function::real, Function::imag, Function::conj,
                                Function::nextafter, Function::zeta});
  rows.insert(rows.end(), {{"aten::div.Tensor_mode", rounded_quotient},
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
