#include "composit/interchange/scalar_rows.h"

#include <complex>
#include <map>
#include <utility>

#include "composit/interchange/values.h"
#include "composit/ir/graph.h"
#include "composit/ops/native.h"
#include "composit/ops/operations.h"

namespace composit::interchange {
namespace {

// Names of ATen that are others than those of functions; empty: there is none.
const std::map<Function, std::string>& other_names() {
  static const auto* names =
      new std::map<Function, std::string>{{Function::select, ""},
                                          {Function::cast, ""},
                                          {Function::floor_divide, ""},
                                          {Function::trunc_divide, ""},
                                          {Function::polygamma, ""},
                                          {Function::min, "minimum"},
                                          {Function::max, "maximum"},
                                          {Function::pow, "pow.Tensor_Tensor"},
                                          {Function::remainder, "remainder.Tensor"},
                                          {Function::fmod, "fmod.Tensor"},
                                          {Function::copysign, "copysign.Tensor"},
                                          {Function::bitwise_and, "bitwise_and.Tensor"},
                                          {Function::bitwise_or, "bitwise_or.Tensor"},
                                          {Function::bitwise_xor, "bitwise_xor.Tensor"},
                                          {Function::shift_left, "bitwise_left_shift.Tensor"},
                                          {Function::shift_right, "bitwise_right_shift.Tensor"},
                                          {Function::zeta, "special_zeta"},
                                          {Function::conj, "conj_physical"},
                                          {Function::add, "add.Tensor"},
                                          {Function::sub, "sub.Tensor"},
                                          {Function::mul, "mul.Tensor"},
                                          {Function::div, "div.Tensor"},
                                          {Function::lt, "lt.Tensor"},
                                          {Function::le, "le.Tensor"},
                                          {Function::gt, "gt.Tensor"},
                                          {Function::ge, "ge.Tensor"},
                                          {Function::eq, "eq.Tensor"},
                                          {Function::ne, "ne.Tensor"}};
  return *names;
}

bool is_logical(Function function) {
  return function == Function::logical_and || function == Function::logical_or ||
         function == Function::logical_not;
}

LazyTensors applied_to_one(const Call& call, const std::vector<Type>& results, Function function,
                           ApplyFunction apply) {
  const LazyTensor& x = call.tensors().at(0);
  const DType dtype = results[0].dtype;
  const bool is_part = is_complex(x.dtype()) && !is_complex(dtype);  // abs, real, imag
  const bool same = x.dtype() == dtype || dtype == DType::bool_ || is_part;
  return same ? LazyTensors{apply(function, {x}, dtype)} : LazyTensors();
}

}  // namespace

const std::string& operator_of(Function function) {
  static const auto* names = [] {
    auto* all = new std::map<Function, std::string>();
    for (int i = 0; i < static_cast<int>(Function::count_); ++i) {
      const auto each = static_cast<Function>(i);
      const auto other = other_names().find(each);
      const std::string name =
          other == other_names().end() ? std::string(info_of(each).name) : other->second;
      (*all)[each] = name.empty() ? "" : "aten::" + name;
    }
    return all;
  }();
  return names->at(function);
}

namespace {

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

LazyTensors applied_to_two(const Call& call, const std::vector<Type>& results, Function function,
                           ApplyFunction apply) {
  if (computes_wide(*find_operation(call.schema().name), call)) return {};
  const LazyTensor x = beside(call.tensors().at(0), call.tensors().at(1));
  const LazyTensor y = beside(call.tensors().at(1), call.tensors().at(0));
  if (x.dtype() != y.dtype()) return {};
  const bool makes = results[0].dtype == DType::bool_ || function == Function::complex;
  if (results[0].dtype != x.dtype() && !makes) return {};
  const bool scaled = function == Function::add || function == Function::sub;
  if (scaled && real_of(call, "alpha") != 1) return {};
  return {apply(function, {x, y}, results[0].dtype)};
}

LazyTensors rounded_quotient(const Call& call, const std::vector<Type>& results,
                             ApplyFunction apply) {
  const ArgumentValue& mode = call["rounding_mode"];
  if (mode.is_none()) return {};
  const bool floors = mode.data().as<std::string>() == "floor";
  return applied_to_two(call, results, floors ? Function::floor_divide : Function::trunc_divide,
                        apply);
}

LazyTensors chosen(const Call& call, const std::vector<Type>& results, const LazyTensor& condition,
                   ApplyFunction apply) {
  const LazyTensor x = beside(call.tensors().at(1), call.tensors().at(2));
  const LazyTensor y = beside(call.tensors().at(2), call.tensors().at(1));
  if (x.dtype() != results[0].dtype || y.dtype() != results[0].dtype) return {};
  return {apply(Function::select, {condition, x, y}, results[0].dtype)};
}

LazyTensors clamped(const Call& call, const std::vector<Type>& results, ApplyFunction apply) {
  LazyTensor x = tensor_of(call, "self");
  if (x.dtype() != results[0].dtype || x.dtype() == DType::bool_) return {};
  constexpr double kExact = 1LL << 53;  // integers below are doubles
  for (const auto& [name, function] :
       {std::pair("min", Function::max), std::pair("max", Function::min)})
    if (!call[name].is_none() && std::abs(real_of(call, name)) >= kExact &&
        !is_floating_point(x.dtype()))
      return {};
    else if (!call[name].is_none())
      x = apply(function, {x, number(real_of(call, name), x.dtype())}, x.dtype());
  return {x};
}

}  // namespace

void add_elementwise_rows(std::vector<Row>& rows, ApplyFunction apply,
                          LazyTensor (*truth)(const LazyTensor& x)) {
  using Types = std::vector<Type>;
  rows.insert(rows.end(),
              {{"aten::div.Tensor_mode",
                [=](const Call& call, const Types& results) {
                  return rounded_quotient(call, results, apply);
                }},
               {"aten::clamp", [=](const Call& call,
                                   const Types& results) { return clamped(call, results, apply); }},
               {"aten::where.self", [=](const Call& call, const Types& results) {
                  return chosen(call, results, truth(call.tensors().at(0)), apply);
                }}});
  using Named = std::pair<std::string_view, Function>;
  for (const auto& [op, function] : {Named("aten::logical_not", Function::logical_not),
                                     Named("aten::logical_and", Function::logical_and),
                                     Named("aten::logical_or", Function::logical_or),
                                     Named("aten::logical_xor", Function::bitwise_xor)})
    rows.push_back({op, [=, function = function](const Call& call, const Types&) {
                      LazyTensors truths;
                      for (const LazyTensor& x : call.tensors()) truths.push_back(truth(x));
                      return LazyTensors{apply(function, truths, DType::bool_)};
                    }});
}

void add_scalar_rows(std::vector<Row>& rows, ApplyFunction apply,
                     const std::set<Function>& except) {
  for (int i = 0; i < static_cast<int>(Function::count_); ++i) {
    const auto function = static_cast<Function>(i);
    const std::string& op = operator_of(function);
    if (op.empty() || is_logical(function) || except.contains(function)) continue;
    const auto applied = info_of(function).arity == 1 ? applied_to_one : applied_to_two;
    rows.push_back({op, [=](const Call& call, const std::vector<Type>& results) {
                      return applied(call, results, function, apply);
                    }});
  }
}

}  // namespace composit::interchange
