#include "composit/op/call.h"

#include <algorithm>

#include "composit/ir/error.h"

namespace composit {
namespace {

std::string describe(const SchemaArgument& argument) {
  std::string text = argument.type_name;
  if (argument.optional_items) text += "?";
  if (argument.list) text += "[]";
  if (argument.optional) text += "?";
  return "'" + argument.name + "' (" + text + ")";
}

std::string describe(const ArgumentValue& value) {
  if (value.is_tensor()) return value.tensor().defined() ? "a tensor" : "no tensor";
  if (value.is_list()) return "a list of tensors";
  return std::string(name(value.data().kind()));
}

[[noreturn]] void refuse(const Schema& schema, const SchemaArgument& argument,
                         const ArgumentValue& value) {
  throw UserError("[" + schema.name.str() + "] argument " + describe(argument) + ": received " +
                  describe(value));
}

std::optional<Scalar::Value> number_of(const Attribute& data) {
  switch (data.kind()) {
    case AttributeKind::boolean:
      return data.as<bool>();
    case AttributeKind::dim:
      return data.as_int();
    case AttributeKind::float_:
      return data.as<double>();
    case AttributeKind::complex:
      return data.as<std::complex<double>>();
    case AttributeKind::scalar:
      return data.as<Scalar>().value;
    default:
      return std::nullopt;
  }
}

// torch's wrapped number: a zero-dimensional constant that takes little part in promotion.
LazyTensor wrapped(const Scalar::Value& number) {
  const auto make = [](DType dtype, const void* data) {
    const Type type = tensor_type(dtype, {});
    NodeSpec spec(ops::kConstant);
    spec.attribute("value", Array::copy_of(type, data)).attribute("wrapped", true).output(type);
    return std::move(spec).make();
  };
  constexpr DType dtypes[] = {DType::bool_, DType::int64, DType::float64, DType::complex128};
  return std::visit([&](const auto& value) { return make(dtypes[number.index()], &value); },
                    number);
}

AttributeKind kind_of(const SchemaArgument& argument) {
  switch (argument.type) {
    case ArgumentType::scalar:
      return AttributeKind::scalar;
    case ArgumentType::integer:
    case ArgumentType::symint:
      return AttributeKind::dim;
    case ArgumentType::floating:
      return AttributeKind::float_;
    case ArgumentType::boolean:
      return AttributeKind::boolean;
    case ArgumentType::complex:
      return AttributeKind::complex;
    case ArgumentType::string:
      return AttributeKind::string;
    case ArgumentType::dtype:
      return AttributeKind::dtype;
    case ArgumentType::layout:
      return AttributeKind::layout;
    case ArgumentType::device:
      return AttributeKind::device;
    case ArgumentType::memory_format:
      return AttributeKind::memory_format;
    case ArgumentType::generator:
      return AttributeKind::generator;
    default:
      return AttributeKind::none;  // any
  }
}

// `data` as an attribute of `kind`, or nothing.
std::optional<Attribute> as_kind(const Attribute& data, AttributeKind kind) {
  if (data.kind() == kind || kind == AttributeKind::none) return data;
  const std::optional<Scalar::Value> number = number_of(data);
  if (!number) return std::nullopt;
  if (kind == AttributeKind::scalar) return Attribute(Scalar(*number));
  const auto* integer = std::get_if<int64_t>(&*number);
  if (kind == AttributeKind::float_) {
    if (integer != nullptr) return Attribute(static_cast<double>(*integer));
    if (const auto* value = std::get_if<double>(&*number)) return Attribute(*value);
  }
  if (kind == AttributeKind::dim && integer != nullptr) return Attribute(*integer);
  if (kind == AttributeKind::boolean && std::holds_alternative<bool>(*number))
    return Attribute(std::get<bool>(*number));
  return std::nullopt;
}

std::optional<Attribute> as_list(const Attribute& data, const SchemaArgument& argument) {
  const AttributeKind kind = kind_of(argument);
  List result{kind, {}};
  const auto* list = data.get_if<List>();
  if (list == nullptr) {  // one number for all
    const std::optional<Attribute> item = as_kind(data, kind);
    if (!item || !argument.length) return std::nullopt;
    result.items.assign(static_cast<size_t>(*argument.length), *item);
    return Attribute(result);
  }
  for (const Attribute& item : list->items) {
    const std::optional<Attribute> converted = item.is_none() ? item : as_kind(item, kind);
    if (!converted) return std::nullopt;
    result.items.push_back(*converted);
  }
  return Attribute(result);
}

ArgumentValue as_tensor(const Schema& schema, const SchemaArgument& argument, ArgumentValue value) {
  if (argument.list) {
    if (value.is_list() || (value.is_none() && argument.optional)) return value;
    refuse(schema, argument, value);
  }
  if (value.is_none()) {
    if (argument.optional) return LazyTensor();
    refuse(schema, argument, value);
  }
  if (value.is_tensor()) return value;
  if (!value.is_list())
    if (const auto number = number_of(value.data())) return wrapped(*number);
  refuse(schema, argument, value);
}

ArgumentValue as_data(const Schema& schema, const SchemaArgument& argument, ArgumentValue value) {
  if (value.is_none()) {
    if (argument.optional) return {};
    refuse(schema, argument, value);
  }
  if (value.is_tensor() || value.is_list()) refuse(schema, argument, value);
  const auto converted =
      argument.list ? as_list(value.data(), argument) : as_kind(value.data(), kind_of(argument));
  if (!converted) refuse(schema, argument, value);
  return *converted;
}

}  // namespace

bool ArgumentValue::is_none() const {
  if (is_tensor()) return !tensor().defined();
  return !is_list() && data().is_none();
}

Call::Call(const Schema& schema, std::vector<ArgumentValue> values) : schema_(&schema) {
  const auto& arguments = schema.arguments;
  if (values.size() > arguments.size())
    throw UserError("[" + schema.name.str() + "] expected at most " +
                    std::to_string(arguments.size()) + " arguments, received " +
                    std::to_string(values.size()));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const SchemaArgument& argument = arguments[i];
    if (i < values.size()) {
      arguments_.push_back(argument.is_tensor() ? as_tensor(schema, argument, std::move(values[i]))
                                                : as_data(schema, argument, std::move(values[i])));
      continue;
    }
    const auto fallback = default_of(argument);
    if (!fallback)
      throw UserError("[" + schema.name.str() + "] argument " + describe(argument) + " is missing");
    arguments_.push_back(argument.is_tensor() && !argument.list ? ArgumentValue(LazyTensor())
                                                                : ArgumentValue(*fallback));
  }
  number_tensors();
}

void Call::number_tensors() {
  size_t operand = 0;
  const auto add = [&](const LazyTensor& tensor, bool in_list) {
    tensors_.push_back(tensor);
    operands_.push_back(operand);
    if (!in_list && !tensor.defined()) return;
    operand_types_.push_back(tensor.defined() ? tensor.type() : undefined_type());
    ++operand;
  };
  for (const ArgumentValue& value : arguments_) {
    first_tensor_.push_back(tensors_.size());
    if (value.is_tensor()) add(value.tensor(), false);
    if (value.is_list())
      for (const LazyTensor& item : value.tensors()) add(item, true);
  }
}

const ArgumentValue& Call::operator[](std::string_view name) const {
  for (size_t i = 0; i < arguments_.size(); ++i)
    if (schema_->arguments[i].name == name) return arguments_[i];
  throw InternalError(schema_->name.str() + " has no argument '" + std::string(name) + "'",
                      __FILE__, __LINE__);
}

NodePtr Call::node(std::vector<Type> results) const {
  NodeSpec spec(schema_->name);
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const ArgumentValue& value = arguments_[i];
    const SchemaArgument& argument = schema_->arguments[i];
    if (value.is_list()) {
      LazyTensors items;
      for (const LazyTensor& item : value.tensors()) items.push_back(item);
      spec.list(items);
    } else if (argument.is_tensor()) {
      spec.tensor(value.is_tensor() ? value.tensor() : LazyTensor());
    } else {
      spec.attribute(argument.name, value.data());
    }
  }
  spec.outputs = std::move(results);
  return std::move(spec).make_node();
}

bool is_wrapped_number(const LazyTensor& tensor) {
  const Node& node = *tensor.node;
  return node.op() == ops::kConstant && node.find_attribute("wrapped") != nullptr;
}

Call call_of(const Node& node, const Schema& schema) {
  return call_of(node, schema, node.operands());
}

Call call_of(const Node& node, const Schema& schema, const LazyTensors& operands) {
  Call call(schema);
  size_t next = 0;
  for (const SchemaArgument& argument : schema.arguments) {
    if (!argument.is_tensor()) {
      const Attribute* data = node.find_attribute(argument.name);
      // What a row has beyond LibTorch's schema is how a captured call was run.
      if (data == nullptr && argument.keyword_only) data = node.find_run(argument.name);
      const auto fallback = data == nullptr ? default_of(argument) : *data;
      if (!fallback)
        throw UserError("[" + schema.name.str() + "] argument " + describe(argument) +
                        " is missing");
      call.arguments_.emplace_back(*fallback);
      continue;
    }
    if (next >= node.arguments().size()) {
      call.arguments_.emplace_back(LazyTensor());
      continue;
    }
    const Argument& given = node.arguments()[next++];
    const auto begin = operands.begin() + given.begin;
    if (given.kind == Argument::Kind::list)
      call.arguments_.emplace_back(LazyTensors(begin, begin + given.size));
    else
      call.arguments_.emplace_back(given.kind == Argument::Kind::tensor ? LazyTensor(*begin)
                                                                        : LazyTensor());
  }
  call.number_tensors();
  return call;
}

}  // namespace composit
