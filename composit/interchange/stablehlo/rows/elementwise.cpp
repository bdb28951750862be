#include "composit/interchange/scalar_rows.h"
#include "composit/interchange/stablehlo/rows.h"
#include "composit/interchange/stablehlo/scalars.h"
#include "composit/ir/graph.h"
#include "composit/ops/native.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;

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
  const bool floors = mode.data().as<std::string>() == "floor";
  return interchange::applied_to_two(
      call, results, floors ? Function::floor_divide : Function::trunc_divide, apply);
}

LazyTensors chosen(const Call& call, const Types& results) {
  const LazyTensor x = interchange::beside(call.tensors().at(1), call.tensors().at(2));
  const LazyTensor y = interchange::beside(call.tensors().at(2), call.tensors().at(1));
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

}  // namespace

void add_elementwise_rows(std::vector<Row>& rows) {
  interchange::add_scalar_rows(rows, apply, {Function::zeta});
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

}  // namespace composit::stablehlo
