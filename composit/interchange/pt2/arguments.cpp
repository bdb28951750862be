#include "composit/interchange/pt2/arguments.h"

#include <algorithm>
#include <complex>

#include "composit/ir/error.h"

namespace composit::pt2 {
namespace {

Json complex_json(std::complex<double> value) {
  return {{"as_complex", {{"real", float_json(value.real())}, {"imag", float_json(value.imag())}}}};
}

// A list is {"as_ints": […]}, from the kind and the value of its items.
Json list_json(const SchemaArgument& argument, const List& list) {
  const bool real = argument.type == ArgumentType::floating;
  Json values = Json::array();
  std::string kind = real                                     ? "as_float"
                     : argument.type == ArgumentType::boolean ? "as_bool"
                     : argument.type == ArgumentType::string  ? "as_string"
                                                              : "as_int";
  SchemaArgument item = argument;
  item.list = item.optional = false;
  for (const Attribute& one : list.items) {
    if (one.is_none()) throw UserError("a list with missing items has no form in the format");
    const Json json = argument_json(item, one);
    const std::string& its_kind = json.begin().key();
    if (!values.empty() && its_kind != kind)
      throw UserError("a list of numbers of several kinds has no form in the format");
    kind = its_kind;
    values.push_back(json.begin().value());
  }
  return {{kind + "s", values}};
}

}  // namespace

Json tensor_json(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }
Json none_json() { return {{"as_none", true}}; }

Json positional(const std::string& name, Json value) {
  constexpr int kPositional = 1;
  return {{"name", name}, {"arg", std::move(value)}, {"kind", kPositional}};
}

Json keyword(const std::string& name, Json value) {
  constexpr int kKeyword = 2;
  return {{"name", name}, {"arg", std::move(value)}, {"kind", kKeyword}};
}

Json number_json(const Scalar::Value& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return {{"as_bool", *truth}};
  if (const auto* integer = std::get_if<int64_t>(&value)) return {{"as_int", *integer}};
  if (const auto* real = std::get_if<double>(&value)) return {{"as_float", float_json(*real)}};
  return complex_json(std::get<std::complex<double>>(value));
}

Json argument_json(const SchemaArgument& argument, const Attribute& value) {
  if (value.is_none()) return none_json();
  if (const auto* list = value.get_if<List>()) return list_json(argument, *list);
  switch (value.kind()) {
    case AttributeKind::boolean:
      return {{"as_bool", value.as<bool>()}};
    case AttributeKind::dim:
      if (argument.type == ArgumentType::floating)
        return {{"as_float", static_cast<double>(value.as_int())}};
      return {{"as_int", value.as_int()}};
    case AttributeKind::float_:
      return {{"as_float", float_json(value.as<double>())}};
    case AttributeKind::complex:
      return complex_json(value.as<std::complex<double>>());
    case AttributeKind::scalar:
      return number_json(value.as<Scalar>().value);
    case AttributeKind::string:
      return {{"as_string", value.as<std::string>()}};
    case AttributeKind::dtype:
      return {{"as_scalar_type", number_of(value.as<DType>())}};
    case AttributeKind::device:
      return {{"as_device", device_json(value.as<Device>())}};
    case AttributeKind::layout:
      return {{"as_layout", number_of(value.as<Layout>())}};
    case AttributeKind::memory_format:
      return {{"as_memory_format", number_of(value.as<MemoryFormat>())}};
    case AttributeKind::generator:
      // torch.export has no generators: what is drawn from another than the default one is lost.
      if (value.as<Generator>().role == "default") return none_json();
      throw UserError("it draws from the generator '" + value.as<Generator>().role +
                      "'; the format knows the default one alone");
    default:
      throw UserError("argument '" + argument.name + "' of kind " +
                      std::string(name(value.kind())) + " has no form in the format");
  }
}

}  // namespace composit::pt2
