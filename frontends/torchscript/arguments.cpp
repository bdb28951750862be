#include "frontends/torchscript/arguments.h"

#include <ATen/ops/empty.h>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/op/promotion.h"
#include "frontends/torchscript/script.h"
#include "frontends/torchscript/structure.h"
#include "tracer/convert.h"

namespace flashlight::torchscript {
namespace {

using composit::DType;
using composit::LazyTensor;
using composit::UserError;

bool is_number_type(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::FloatType || type->kind() == c10::TypeKind::IntType ||
         type->kind() == c10::TypeKind::BoolType || type->kind() == c10::TypeKind::NumberType;
}

[[noreturn]] void refuse(const std::string& name, const c10::TypePtr& type,
                         const std::string& received) {
  throw UserError("[torchscript] argument '" + name + "': expected " + type->annotation_str() +
                  ", received " + received);
}

// A number that is given as a tensor, in the dtype it is computed in.
void expect_number(const std::string& name, const c10::TypePtr& type, const LazyTensor& value) {
  const bool real = composit::is_floating_point(value.dtype());
  const bool fits = type->kind() == c10::TypeKind::FloatType  ? real
                    : type->kind() == c10::TypeKind::IntType  ? value.dtype() == DType::int64
                    : type->kind() == c10::TypeKind::BoolType ? value.dtype() == DType::bool_
                                                              : true;
  if (value.rank() != 0 || !fits) refuse(name, type, "a tensor " + composit::print(value.type()));
}

IValue bind_tensor(const at::Tensor& tensor, const c10::TypePtr& type, const std::string& name,
                   State& state, Bound& bound) {
  const auto found = bound.given.find(tensor.unsafeGetTensorImpl());
  LazyTensor value;
  if (found != bound.given.end()) {
    value = found->second;
  } else {
    const composit::Dims sizes(tensor.sizes().begin(), tensor.sizes().end());
    value = composit::input(
        name, composit::tensor_type(tracer::to_composit(tensor.scalar_type()), sizes));
  }
  IValue bound_to;
  if (is_number_type(type)) {
    expect_number(name, type, value);
    bound_to = state.number(value);
  } else if (type->kind() == c10::TypeKind::TensorType || type->kind() == c10::TypeKind::AnyType) {
    bound_to = state.tensor(value);
  } else {
    refuse(name, type, "a tensor " + composit::print(value.type()));
  }
  bound.tensors.push_back(bound_to.toTensor());
  bound.values.push_back(value);
  return bound_to;
}

}  // namespace

IValue bind_argument(const IValue& given, const c10::TypePtr& type, const std::string& name,
                     State& state, Bound& bound) {
  if (const auto optional = type->cast<c10::OptionalType>())
    return given.isNone() ? given
                          : bind_argument(given, optional->getElementType(), name, state, bound);
  if (given.isTensor()) return bind_tensor(given.toTensor(), type, name, state, bound);
  const auto item_name = [&](size_t i) { return name + "." + std::to_string(i); };
  if (const auto list = type->cast<c10::ListType>(); list && given.isList()) {
    c10::impl::GenericList items(list->getElementType());
    for (const IValue& item : given.toList().vec())
      items.push_back(
          bind_argument(item, list->getElementType(), item_name(items.size()), state, bound));
    state.made(items);
    return items;
  }
  if (const auto tuple = type->cast<c10::TupleType>(); tuple && given.isTuple()) {
    const auto& elements = given.toTupleRef().elements();
    if (elements.size() != tuple->elements().size()) refuse(name, type, describe(given, state));
    std::vector<IValue> items;
    for (size_t i = 0; i < elements.size(); ++i)
      items.push_back(bind_argument(elements[i], tuple->elements()[i], item_name(i), state, bound));
    return c10::ivalue::Tuple::create(std::move(items));
  }
  if (type->kind() == c10::TypeKind::FloatType && given.isInt())
    return static_cast<double>(given.toInt());
  if (!given.type()->isSubtypeOf(*type)) refuse(name, type, describe(given, state));
  const IValue own = given.deepcopy();
  state.made(own);
  return own;
}

IValue plain_argument(const IValue& given, const c10::TypePtr& type) {
  if (given.isTensor()) {
    const at::Tensor& tensor = given.toTensor();
    if (type->kind() == c10::TypeKind::FloatType) return tensor.item().toDouble();
    if (type->kind() == c10::TypeKind::IntType) return tensor.item().toLong();
    if (type->kind() == c10::TypeKind::BoolType) return tensor.item().toBool();
    return tensor.clone();
  }
  if (const auto list = type->cast<c10::ListType>(); list && given.isList()) {
    c10::impl::GenericList items(list->getElementType());
    for (const IValue& item : given.toList().vec())
      items.push_back(plain_argument(item, list->getElementType()));
    return items;
  }
  if (const auto tuple = type->cast<c10::TupleType>(); tuple && given.isTuple()) {
    std::vector<IValue> items = given.toTupleRef().elements().vec();
    for (size_t i = 0; i < items.size(); ++i)
      items[i] = plain_argument(items[i], tuple->elements().at(i));
    return c10::ivalue::Tuple::create(std::move(items));
  }
  return given.deepcopy();
}

std::vector<IValue> with_defaults(const std::string& function,
                                  const std::vector<c10::Argument>& parameters,
                                  std::vector<IValue> given) {
  if (given.size() > parameters.size())
    throw UserError("[torchscript] '" + function + "': expected " +
                    std::to_string(parameters.size()) + " arguments, received " +
                    std::to_string(given.size()));
  for (size_t i = given.size(); i < parameters.size(); ++i) {
    if (!parameters[i].default_value())
      throw UserError("[torchscript] '" + function + "': argument '" + parameters[i].name() +
                      "' (" + parameters[i].type()->annotation_str() + ") is missing");
    given.push_back(*parameters[i].default_value());
  }
  return given;
}

namespace {

// Dtypes of the tensors that stand for floats.
void add_floats(const c10::TypePtr& type, const IValue& given, std::optional<DType>& floats) {
  if (type->kind() == c10::TypeKind::FloatType && given.isTensor()) {
    const DType dtype = tracer::to_composit(given.toTensor().scalar_type());
    if (composit::is_floating_point(dtype))
      floats = floats ? composit::promote(*floats, dtype) : dtype;
  } else if (const auto list = type->cast<c10::ListType>(); list && given.isList()) {
    for (const IValue& item : given.toList().vec())
      add_floats(list->getElementType(), item, floats);
  } else if (const auto tuple = type->cast<c10::TupleType>(); tuple && given.isTuple()) {
    const auto& items = given.toTupleRef().elements();
    for (size_t i = 0; i < std::min(items.size(), tuple->elements().size()); ++i)
      add_floats(tuple->elements()[i], items[i], floats);
  }
}

}  // namespace

DType floats_of(const std::vector<c10::Argument>& parameters,
                const std::vector<IValue>& arguments) {
  std::optional<DType> floats;
  for (size_t i = 0; i < parameters.size(); ++i)
    add_floats(parameters[i].type(), arguments[i], floats);
  return floats.value_or(DType::float64);
}

void expect_parameters(const std::string& function, const std::vector<c10::Argument>& parameters,
                       const std::map<std::string, IValue>& known) {
  for (const auto& [name, value] : known)
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const c10::Argument& one) { return one.name() == name; }))
      throw UserError("[torchscript] '" + function + "' has no parameter '" + name + "'");
}

IValue TensorsInOrder::argument(const c10::Argument& parameter) {
  if (next_ == tensors_.size() && parameter.default_value()) return *parameter.default_value();
  return take(parameter.type(), parameter.name());
}

IValue TensorsInOrder::take(const c10::TypePtr& type, const std::string& name) {
  if (const auto tuple = type->cast<c10::TupleType>()) {
    std::vector<IValue> items;
    for (size_t i = 0; i < tuple->elements().size(); ++i)
      items.push_back(take(tuple->elements()[i], name + "." + std::to_string(i)));
    return c10::ivalue::Tuple::create(std::move(items));
  }
  const auto optional = type->cast<c10::OptionalType>();
  const c10::TypePtr inner = optional ? optional->getElementType() : type;
  if (inner->kind() != c10::TypeKind::TensorType && !is_number_type(inner))
    throw UserError("[torchscript] '" + function_ + "': argument '" + name + "' (" +
                    type->annotation_str() +
                    ") is no tensor or number; give it by name, beside the function's name");
  if (next_ == tensors_.size())
    throw UserError("[torchscript] '" + function_ + "': expected a tensor for '" + name +
                    "', received " + std::to_string(tensors_.size()) + " in all");
  const LazyTensor& value = tensors_[next_++];
  const at::Tensor stand_in = like(value.type());
  stand_ins_[stand_in.unsafeGetTensorImpl()] = value;
  return stand_in;
}

void TensorsInOrder::expect_end() const {
  if (next_ != tensors_.size())
    throw UserError("[torchscript] '" + function_ + "': expected " + std::to_string(next_) +
                    " tensors, received " + std::to_string(tensors_.size()));
}

}  // namespace flashlight::torchscript
