// Python's numbers, where the graph computes them: zero-dimensional tensors. What is known is
// computed by LibTorch.
#include <ATen/core/function_schema.h>

#include "composit/eval/evaluate.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "frontends/torchscript/interpreter.h"

namespace flashlight::torchscript {
namespace {

using composit::ArgumentValue;
using composit::DType;
using composit::LazyTensor;

enum class Kind { arithmetic, real, comparison, logic, conversion, least, greatest, power };
struct NumberOperator {
  Kind kind;
  std::string op = {};                      // on tensors
  std::vector<ArgumentValue> further = {};  // arguments
};

// By the names that LibTorch's compiler gives to operators on numbers, whatever their overload.
const NumberOperator* number_operator(const std::string& name) {
  static const std::map<std::string, NumberOperator> kOperators = [] {
    std::map<std::string, NumberOperator> all = {
        {"aten::add", {Kind::arithmetic, "aten::add.Tensor"}},
        {"aten::sub", {Kind::arithmetic, "aten::sub.Tensor"}},
        {"aten::mul", {Kind::arithmetic, "aten::mul.Tensor"}},
        {"aten::div", {Kind::real, "aten::div.Tensor"}},
        {"aten::floordiv", {Kind::arithmetic, "aten::div.Tensor_mode", {"floor"}}},
        {"aten::remainder", {Kind::arithmetic, "aten::remainder.Tensor"}},
        {"aten::fmod", {Kind::real, "aten::fmod.Tensor"}},
        {"aten::neg", {Kind::arithmetic, "aten::neg"}},
        {"prim::abs", {Kind::arithmetic, "aten::abs"}},
        {"aten::abs", {Kind::arithmetic, "aten::abs"}},
        {"aten::fabs", {Kind::real, "aten::abs"}},
        {"aten::pow", {Kind::power}},
        {"prim::min", {Kind::least}},
        {"prim::max", {Kind::greatest}},
        {"aten::__and__", {Kind::logic, "and"}},
        {"aten::__or__", {Kind::logic, "or"}},
        {"aten::__xor__", {Kind::logic, "xor"}},
        {"aten::__not__", {Kind::logic, "not"}},
        {"aten::Float", {Kind::conversion}},
        {"aten::FloatImplicit", {Kind::conversion}},
        {"aten::Int", {Kind::conversion}},
        {"aten::IntImplicit", {Kind::conversion}},
        {"aten::Bool", {Kind::conversion}},
        {"aten::item", {Kind::conversion}},
        {"aten::ScalarImplicit", {Kind::conversion}}};
    for (const char* same :
         {"aten::lt", "aten::le", "aten::gt", "aten::ge", "aten::eq", "aten::ne"})
      all[same] = {Kind::comparison, std::string(same) + ".Tensor"};
    for (const char* same :
         {"aten::exp",   "aten::expm1",  "aten::log",   "aten::log2",  "aten::log10",
          "aten::log1p", "aten::sqrt",   "aten::sin",   "aten::cos",   "aten::tan",
          "aten::asin",  "aten::acos",   "aten::atan",  "aten::sinh",  "aten::cosh",
          "aten::tanh",  "aten::asinh",  "aten::acosh", "aten::atanh", "aten::erf",
          "aten::erfc",  "aten::floor",  "aten::ceil",  "aten::round", "aten::trunc",
          "aten::atan2", "aten::lgamma", "aten::isnan", "aten::isinf", "aten::isfinite"})
      all[same] = {Kind::real, same};
    all["aten::copysign"] = {Kind::real, "aten::copysign.Tensor"};
    return all;
  }();
  const auto found = kOperators.find(name);
  return found == kOperators.end() ? nullptr : &found->second;
}

// The value of a tensor that depends on constants alone, as size computations of traced models do.
std::optional<IValue> folded(const LazyTensor& number) {
  constexpr size_t kFew = 100;
  const composit::Graph graph = number.graph();
  if (graph.size() > kFew) return std::nullopt;
  for (const composit::NodePtr& node : graph.nodes())
    if (composit::is_input(*node) || node->effect() >= 0) return std::nullopt;
  const composit::Array value = composit::evaluate({number})[0];
  if (number.dtype() == DType::bool_) return IValue(composit::elements<int64_t>(value)[0] != 0);
  if (composit::is_floating_point(number.dtype()))
    return IValue(composit::elements<double>(value)[0]);
  return IValue(composit::elements<int64_t>(value)[0]);
}

}  // namespace

std::optional<DType> Interpreter::dtype_of(const c10::TypePtr& type) const {
  switch (type->kind()) {
    case c10::TypeKind::FloatType:
      return floats_;
    case c10::TypeKind::IntType:
      return DType::int64;
    case c10::TypeKind::BoolType:
      return DType::bool_;
    default:
      return std::nullopt;
  }
}

DType Interpreter::number_dtype(const IValue& value) {
  if (value.isDouble()) return floats_;
  if (value.isInt()) return DType::int64;
  if (value.isBool()) return DType::bool_;
  return state_.value(value.toTensor()).dtype();
}

ArgumentValue Interpreter::number_argument(const IValue& value, DType dtype) {
  if (value.isTensor()) return composit::to(state_.value(value.toTensor()), dtype);
  const c10::Scalar number = value.toScalar();
  if (composit::is_floating_point(dtype)) return number.toDouble();
  return dtype == DType::bool_ ? ArgumentValue(number.toBool()) : ArgumentValue(number.toLong());
}

LazyTensor Interpreter::tensor_of(const IValue& value) {
  if (value.isTensor()) return state_.value(value.toTensor());
  if (!value.isDouble() && !value.isInt() && !value.isBool())
    throw Unsupported("expected a tensor or a number, received " + describe(value, state_));
  const DType dtype = number_dtype(value);
  const composit::Type type = composit::tensor_type(dtype, {});
  return composit::constant(
      composit::array_of(type, std::vector<double>{value.toScalar().toDouble()}));
}

void Interpreter::set_number(Node* node, const LazyTensor& value) {
  const auto dtype = dtype_of(node->output()->type());
  set_output(node, state_.number(composit::to(value, dtype.value_or(value.dtype()))));
}

void Interpreter::read_number(Node* node, const IValue& value) {
  LazyTensor number = state_.value(value.toTensor());
  if (number.numel() != 1)
    throw composit::UserError("expected a tensor of one element, received " +
                              describe(value, state_));
  number = composit::reshape(number, {});
  if (!dtype_of(node->output()->type()) && composit::is_floating_point(number.dtype()))
    number = composit::to(number, floats_);
  if (const auto dtype = dtype_of(node->output()->type())) number = composit::to(number, *dtype);
  if (const auto known = folded(number)) return set_output(node, *known);
  set_output(node, state_.number(number));
}

// Item `index` of range(start, …, step).
void Interpreter::derive_index(Node* node, const Values& inputs) {
  const LazyTensor index = tensor_of(inputs[0]), start = tensor_of(inputs[1]);
  const LazyTensor derived = inputs[2].isInt() && inputs[2].toInt() == 1
                                 ? index + start
                                 : index * tensor_of(inputs[2]) + start;
  const Counter* counter = counter_of(index);
  if (counter != nullptr && inputs[1].isInt() && inputs[2].isInt())
    slots_.back()->counters.push_back({derived, inputs[1].toInt(), inputs[2].toInt()});
  set_number(node, derived);
}

bool Interpreter::run_number_operator(Node* node, const Values& inputs) {
  const std::string name = node->kind().toQualString();
  if (name == "aten::__getitem__" && inputs[0].isList() && state_.is_number(inputs[1])) {
    item_of_list(node, inputs);
    return true;
  }
  if (name == "aten::__derive_index" &&
      std::any_of(inputs.begin(), inputs.end(), [](const IValue& x) { return x.isTensor(); })) {
    derive_index(node, inputs);
    return true;
  }
  const NumberOperator* op = number_operator(name);
  bool computed = false, plain = true, real = false;
  for (const IValue& input : inputs) {
    computed = computed || input.isTensor();
    plain = plain && (input.isTensor() || input.isScalar());
    real = real || (plain && composit::is_floating_point(number_dtype(input)));
  }
  if (op == nullptr || !computed || !plain) return false;
  if (op->kind == Kind::conversion) {
    read_number(node, inputs[0]);
    return true;
  }
  const DType common = real ? floats_ : DType::int64;
  const auto operands = [&](DType dtype) {
    std::vector<ArgumentValue> arguments;
    for (const IValue& input : inputs) arguments.push_back(number_argument(input, dtype));
    return arguments;
  };
  const auto apply = [&](DType dtype, const std::string& name_of_op) {
    std::vector<ArgumentValue> arguments = operands(dtype);
    arguments.insert(arguments.end(), op->further.begin(), op->further.end());
    set_number(node, composit::apply_one(name_of_op, std::move(arguments)));
  };
  if (op->kind == Kind::real) {
    apply(floats_, op->op);
  } else if (op->kind == Kind::logic) {
    const bool bits = node->output()->type()->kind() == c10::TypeKind::IntType;
    apply(bits ? DType::int64 : DType::bool_,
          bits ? "aten::bitwise_" + op->op + ".Tensor" : "aten::logical_" + op->op);
  } else if (op->kind == Kind::power) {
    const DType dtype = dtype_of(node->output()->type()).value_or(common);
    auto x = operands(dtype);
    // A power of numbers is C's. Of a tensor, by a number, it is torch's, of products and roots.
    if (composit::is_floating_point(dtype) && !x[1].is_tensor())
      x[1] = composit::constant(composit::array_of(
          composit::tensor_type(dtype, {}), std::vector<double>{inputs[1].toScalar().toDouble()}));
    set_number(node,
               composit::apply_one(
                   x[1].is_tensor() ? "aten::pow.Tensor_Tensor" : "aten::pow.Tensor_Scalar", x));
  } else if (op->kind == Kind::least || op->kind == Kind::greatest) {
    const auto x = operands(common);  // as C++'s: the second where one is NaN
    const char* order = op->kind == Kind::least ? "aten::lt.Tensor" : "aten::gt.Tensor";
    set_number(node, composit::apply_one("aten::where.self",
                                         {composit::apply_one(order, {x[0], x[1]}), x[0], x[1]}));
  } else {
    apply(common, op->op);
  }
  return true;
}

// Operators that take any values in lists do not look at them; others would.
void Interpreter::check_numbers_known(Node* node, const Values& inputs) {
  const c10::FunctionSchema& schema = node->schema();
  for (size_t i = 0; i < std::min(inputs.size(), schema.arguments().size()); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const bool any = argument.type()->hasFreeVariables() ||
                     argument.type()->kind() == c10::TypeKind::AnyType ||
                     argument.type()->kind() == c10::TypeKind::TensorType;
    if (!any && is_computed(inputs[i], state_))
      throw not_known("argument '" + argument.name() + "' of " + schema.name());
  }
}

}  // namespace flashlight::torchscript
