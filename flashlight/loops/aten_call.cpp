#include "flashlight/loops/aten_call.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/op/call.h"

namespace flashlight::loops {
namespace {

using composit::Attribute;
using composit::Call;
using composit::DType;
using composit::SchemaArgument;
using composit::UserError;

constexpr std::string_view kNamespace = "aten::";

// Throws UserError unless C++ can spell `data` and, for a list, its items.
void expect_written(const Attribute& data, const SchemaArgument& argument) {
  if (const auto* list = data.get_if<composit::List>()) {
    for (const Attribute& item : list->items) expect_written(item, argument);
    return;
  }
  if (const auto* dtype = data.get_if<DType>();
      dtype != nullptr && (*dtype == DType::uint16 || *dtype == DType::uint32 ||
                           *dtype == DType::uint64 || !composit::is_computable(*dtype)))
    throw UserError("with a dtype that code cannot compute with");
  const auto* layout = data.get_if<composit::Layout>();
  const auto* device = data.get_if<composit::Device>();
  const auto* format = data.get_if<composit::MemoryFormat>();
  using Kind = composit::AttributeKind;
  const Kind kind = data.kind();
  const bool written = kind == Kind::none || kind == Kind::boolean || kind == Kind::dim ||
                       kind == Kind::float_ || kind == Kind::string || kind == Kind::dtype ||
                       kind == Kind::scalar ||
                       (layout != nullptr && *layout == composit::Layout::strided) ||
                       (device != nullptr && *device == composit::Device()) ||
                       (format != nullptr && *format == composit::MemoryFormat::contiguous);
  if (!written)
    throw UserError("with '" + argument.name + "', " + std::string(name(kind)) +
                    " that code cannot write");
}

Attribute tensor_option(const composit::LazyTensor& tensor, size_t& next) {
  if (!tensor.defined()) return {};
  std::vector<int64_t> numbers = {static_cast<int64_t>(next++)};
  const auto sizes = tensor.sizes();
  numbers.insert(numbers.end(), sizes.begin(), sizes.end());
  return composit::int_list(numbers);
}

Attribute option(const composit::ArgumentValue& value, const SchemaArgument& argument,
                 size_t& next) {
  if (value.is_tensor()) return tensor_option(value.tensor(), next);
  if (value.is_list()) {
    composit::List items = {composit::AttributeKind::list, {}};
    for (const composit::LazyTensor& tensor : value.tensors())
      items.items.push_back(tensor_option(tensor, next));
    return items;
  }
  expect_written(value.data(), argument);
  return value.data();
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
  if (writes) return std::nullopt;
  RuntimeCallOf result;
  result.call.function = composit::Symbol("aten::" + std::string(schema.name.base_name()));
  result.call.schema = std::make_shared<const composit::Schema>(schema);
  result.call.effect = node.find_run("effect") != nullptr;
  const Call call = composit::call_of(node, schema);
  for (size_t i = 0; i < call.size(); ++i)
    result.call.options.push_back({composit::Symbol(schema.arguments[i].name),
                                   option(call[i], schema.arguments[i], result.operands)});
  return result;
}

}  // namespace flashlight::loops
