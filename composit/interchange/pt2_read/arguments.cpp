#include "composit/interchange/pt2_read/arguments.h"

#include <complex>
#include <map>
#include <optional>

#include "composit/interchange/pt2/format.h"
#include "composit/ir/error.h"

namespace composit::pt2_read {
namespace {

using Read = ArgumentValue (*)(const Json& content, const ValueOf& value_of);

template <class T>
T known(const std::optional<T>& value, const char* what, const Json& number) {
  if (!value) throw UserError(std::string("there is no ") + what + " of number " + shown(number));
  return *value;
}

Attribute device_of(const Json& content) {
  std::string text = text_of(field(content, "type"));
  if (const Json* index = find_field(content, "index"))
    text += ":" + std::to_string(int_of(*index));
  const auto device = device_from_name(text);
  if (!device || device->type != Device().type)
    throw UserError("the device '" + text +
                    "'; move the program first: torch.export.passes.move_to_device_pass(program, "
                    "\"cpu\")");
  return *device;
}

// {"as_name": "n"}, {"as_int": 3}: a number that follows from sizes, or a plain one.
Attribute number_of(const Json& content, const ValueOf& value_of) {
  const auto [kind, value] = only_field(content);
  if (kind == "as_int") return int_of(*value);
  if (kind == "as_bool") return truth_of(*value);
  if (kind == "as_float") return real_of(*value);
  if (kind != "as_name") throw UserError("expected a number, received " + shown(content));
  const ArgumentValue& named = value_of(text_of(*value));
  if (named.is_tensor() || named.is_list())
    throw UserError("expected a number, received the tensor '" + text_of(*value) + "'");
  return named.data();
}

template <class Item>
ArgumentValue list_value(const Json& content, AttributeKind kind, const Item& item) {
  List list{kind, {}};
  for (const Json& one : list_of(content)) list.items.push_back(item(one));
  return Attribute(list);
}

LazyTensor tensor_named(const Json& content, const ValueOf& value_of) {
  const std::string& name = text_of(field(content, "name"));
  const ArgumentValue& value = value_of(name);
  if (!value.is_tensor()) throw UserError("'" + name + "' is no tensor");
  return value.tensor();
}

ArgumentValue tensors(const Json& content, const ValueOf& value_of) {
  LazyTensors items;
  for (const Json& one : list_of(content)) items.push_back(tensor_named(one, value_of));
  return items;
}

ArgumentValue optional_tensors(const Json& content, const ValueOf& value_of) {
  LazyTensors items;
  for (const Json& one : list_of(content)) {
    const auto [kind, value] = only_field(one);
    items.push_back(kind == "as_none" ? LazyTensor() : tensor_named(*value, value_of));
  }
  return items;
}

Attribute int_item(const Json& json) { return int_of(json); }
Attribute real_item(const Json& json) { return real_of(json); }
Attribute truth_item(const Json& json) { return truth_of(json); }
Attribute text_item(const Json& json) { return text_of(json); }

template <AttributeKind kind>
ArgumentValue symbolic_list(const Json& content, const ValueOf& value_of) {
  return list_value(content, kind, [&](const Json& one) { return number_of(one, value_of); });
}

ArgumentValue symbolic(const Json& content, const ValueOf& value_of) {
  return number_of(content, value_of);
}

const std::map<std::string_view, Read>& kinds() {
  using Values = const ValueOf&;
  static const auto* table = new std::map<std::string_view, Read>{
      {"as_none", [](const Json&, Values) { return ArgumentValue(); }},
      {"as_tensor", [](const Json& c, Values v) { return ArgumentValue(tensor_named(c, v)); }},
      {"as_tensors", tensors},
      {"as_optional_tensors", optional_tensors},
      {"as_optional_tensor",
       [](const Json& c, Values v) {
         const auto [kind, value] = only_field(c);
         return ArgumentValue(kind == "as_none" ? LazyTensor() : tensor_named(*value, v));
       }},
      {"as_int", [](const Json& c, Values) { return ArgumentValue(int_of(c)); }},
      {"as_float", [](const Json& c, Values) { return ArgumentValue(real_of(c)); }},
      {"as_bool", [](const Json& c, Values) { return ArgumentValue(truth_of(c)); }},
      {"as_string", [](const Json& c, Values) { return ArgumentValue(text_of(c)); }},
      {"as_complex",
       [](const Json& c, Values) {
         const std::complex<double> value(real_of(field(c, "real")), real_of(field(c, "imag")));
         return ArgumentValue(Attribute(value));
       }},
      {"as_ints",
       [](const Json& c, Values) { return list_value(c, AttributeKind::dim, int_item); }},
      {"as_floats",
       [](const Json& c, Values) { return list_value(c, AttributeKind::float_, real_item); }},
      {"as_bools",
       [](const Json& c, Values) { return list_value(c, AttributeKind::boolean, truth_item); }},
      {"as_strings",
       [](const Json& c, Values) { return list_value(c, AttributeKind::string, text_item); }},
      {"as_scalar_type",
       [](const Json& c, Values) {
         return ArgumentValue(Attribute(known(pt2::dtype_of(int_of(c)), "dtype", c)));
       }},
      {"as_memory_format",
       [](const Json& c, Values) {
         return ArgumentValue(
             Attribute(known(pt2::memory_format_of(int_of(c)), "memory format", c)));
       }},
      {"as_layout",
       [](const Json& c, Values) {
         return ArgumentValue(Attribute(known(pt2::layout_of(int_of(c)), "layout", c)));
       }},
      {"as_device", [](const Json& c, Values) { return ArgumentValue(device_of(c)); }},
      {"as_sym_int", symbolic},
      {"as_sym_bool", symbolic},
      {"as_sym_float", symbolic},
      {"as_sym_ints", symbolic_list<AttributeKind::dim>},
      {"as_sym_bools", symbolic_list<AttributeKind::boolean>},
      {"as_sym_floats", symbolic_list<AttributeKind::float_>}};
  return *table;
}

// An empty list says nothing of what it is a list of.
ArgumentValue as_wanted(const SchemaArgument& argument, ArgumentValue value) {
  if (!argument.list) return value;
  if (argument.is_tensor() && !value.is_tensor() && !value.is_list()) {
    const List* list = value.data().get_if<List>();
    if (list != nullptr && list->items.empty()) return LazyTensors();
  }
  if (!argument.is_tensor() && value.is_list() && value.tensors().empty())
    return Attribute(List{AttributeKind::none, {}});
  return value;
}

size_t place_of(const Schema& schema, const Json& input, size_t position) {
  constexpr int64_t kPositional = 1;
  const std::string& name = text_of(field(input, "name"));
  const auto& arguments = schema.arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == name) return i;
  const Json* kind = find_field(input, "kind");
  if (kind != nullptr && int_of(*kind) == kPositional && position < arguments.size())
    return position;
  throw UserError("it has no argument '" + name + "'");
}

}  // namespace

ArgumentValue argument_value(const Json& argument, const ValueOf& value_of) {
  const auto [kind, content] = only_field(argument);
  const auto known = kinds().find(kind);
  if (known == kinds().end())
    throw UserError("an argument of kind '" + std::string(kind.substr(0, 40)) + "'");
  return known->second(*content, value_of);
}

std::vector<ArgumentValue> bound(const Schema& schema, const Json& inputs,
                                 const ValueOf& value_of) {
  std::vector<std::optional<ArgumentValue>> given(schema.arguments.size());
  size_t position = 0;
  for (const Json& input : list_of(inputs)) {
    const size_t place = place_of(schema, input, position++);
    if (given[place]) throw UserError("its argument '" + schema.arguments[place].name + "' twice");
    given[place] =
        as_wanted(schema.arguments[place], argument_value(field(input, "arg"), value_of));
  }
  std::vector<ArgumentValue> values;
  for (size_t i = 0; i < given.size(); ++i) {
    const SchemaArgument& argument = schema.arguments[i];
    if (given[i]) {
      values.push_back(*given[i]);
      continue;
    }
    const std::optional<Attribute> otherwise = default_of(argument);
    if (!otherwise) throw UserError("its argument '" + argument.name + "' is missing");
    if (argument.is_tensor())
      values.push_back(argument.list && !otherwise->is_none() ? ArgumentValue(LazyTensors())
                                                              : ArgumentValue(LazyTensor()));
    else
      values.emplace_back(*otherwise);
  }
  return values;
}

}  // namespace composit::pt2_read
