#include "flashlight/cpp/aten_call.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/op/call.h"
#include "flashlight/cpp/literal.h"

namespace flashlight::cpp {
namespace {

using composit::ArgumentType;
using composit::Attribute;
using composit::Call;
using composit::DType;
using composit::SchemaArgument;
using composit::UserError;

constexpr std::string_view kNamespace = "aten::";

std::string integer(int64_t value) { return literal(composit::Scalar::Value(value), DType::int64); }

template <class List>
std::string joined(const List& list) {
  return fmt::format("{{{}}}", fmt::join(list, ", "));
}

// c10::ScalarType's name.
std::string scalar_type(DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return "at::kBool";
    case DType::uint8:
      return "at::kByte";
    case DType::int8:
      return "at::kChar";
    case DType::int16:
      return "at::kShort";
    case DType::int32:
      return "at::kInt";
    case DType::int64:
      return "at::kLong";
    case DType::float16:
      return "at::kHalf";
    case DType::bfloat16:
      return "at::kBFloat16";
    case DType::float32:
      return "at::kFloat";
    case DType::float64:
      return "at::kDouble";
    case DType::complex64:
      return "at::kComplexFloat";
    case DType::complex128:
      return "at::kComplexDouble";
    default:
      throw UserError("with a dtype that code cannot compute with");
  }
}

std::string scalar(const composit::Scalar& scalar) {
  if (const auto* value = std::get_if<bool>(&scalar.value)) return *value ? "true" : "false";
  if (const auto* value = std::get_if<int64_t>(&scalar.value)) return integer(*value);
  if (const auto* value = std::get_if<double>(&scalar.value))
    return literal(*value, DType::float64);
  const auto value = std::get<std::complex<double>>(scalar.value);
  return "c10::complex<double>(" + literal(value.real(), DType::float64) + ", " +
         literal(value.imag(), DType::float64) + ")";
}

// Data of one of the kinds that attributes have.
std::string data_text(const Attribute& data, const SchemaArgument& argument) {
  if (data.is_none()) return "std::nullopt";
  if (const auto* list = data.get_if<composit::List>()) {
    std::vector<std::string> items;
    for (const Attribute& item : list->items) items.push_back(data_text(item, argument));
    const bool sizes =
        argument.type == ArgumentType::integer || argument.type == ArgumentType::symint;
    return (sizes ? "at::IntArrayRef(" : "") + joined(items) + (sizes ? ")" : "");
  }
  if (const auto* value = data.get_if<bool>()) return *value ? "true" : "false";
  if (const auto* value = data.get_if<composit::Dim>()) return integer(value->value());
  if (const auto* value = data.get_if<double>()) return literal(*value, DType::float64);
  if (const auto* value = data.get_if<std::string>()) return quoted(*value);
  if (const auto* value = data.get_if<DType>()) return scalar_type(*value);
  if (const auto* value = data.get_if<composit::Scalar>()) return scalar(*value);
  if (const auto* value = data.get_if<composit::Layout>();
      value != nullptr && *value == composit::Layout::strided)
    return "at::kStrided";
  if (const auto* value = data.get_if<composit::Device>();
      value != nullptr && *value == composit::Device())
    return "at::kCPU";
  if (const auto* value = data.get_if<composit::MemoryFormat>();
      value != nullptr && *value == composit::MemoryFormat::contiguous)
    return "at::MemoryFormat::Contiguous";
  throw UserError("with '" + argument.name + "', " + std::string(name(data.kind())) +
                  " that code cannot write");
}

// "fl::tensor(#0, {3, 4})".
std::string tensor_text(const composit::Tensor& tensor, size_t& next) {
  if (!tensor.defined()) return "at::Tensor()";
  return "fl::tensor(#" + std::to_string(next++) + ", " + joined(tensor.sizes()) + ")";
}

// As at:: functions take it: a list of tensors that may be absent is one of optionals.
std::string argument_text(const composit::ArgumentValue& value, const SchemaArgument& argument,
                          size_t& next) {
  if (value.is_list()) {
    std::vector<std::string> items;
    for (const composit::Tensor& tensor : value.tensors())
      items.push_back(tensor_text(tensor, next));
    return argument.optional_items ? "c10::List<std::optional<at::Tensor>>(" + joined(items) + ")"
                                   : "std::vector<at::Tensor>" + joined(items);
  }
  if (value.is_tensor())
    return value.tensor().defined() || !argument.optional ? tensor_text(value.tensor(), next)
                                                          : "std::nullopt";
  return data_text(value.data(), argument);
}

}  // namespace

AtenSchemas aten_schemas(const std::vector<std::string>& texts) {
  AtenSchemas schemas;
  for (const std::string& text : texts)
    if (text.starts_with(kNamespace)) {
      composit::Schema schema = composit::parse_schema(text);
      const std::string name = schema.name.str();
      schemas.emplace(name, std::move(schema));
    }
  return schemas;
}

std::optional<RuntimeCallOf> aten_call_of(const composit::Node& node,
                                          const composit::Schema& schema) {
  const bool writes = std::any_of(schema.arguments.begin(), schema.arguments.end(),
                                  [](const SchemaArgument& one) { return one.written(); });
  const bool undefined = std::any_of(node.outputs().begin(), node.outputs().end(),
                                     [](const Type& one) { return !is_defined(one); });
  if (writes || undefined) return std::nullopt;
  const std::string base(node.op().base_name());
  RuntimeCallOf result;
  result.call.function = "at::" + base;
  result.call.header = "flashlight_aten.hpp";
  result.call.effect = node.find_run("effect") != nullptr;
  result.call.link = "ATen/ops/" + base + ".h";
  const Call call = composit::call_of(node, schema);
  for (size_t i = 0; i < call.size(); ++i)
    result.call.options.push_back(argument_text(call[i], schema.arguments[i], result.operands));
  return result;
}

}  // namespace flashlight::cpp
