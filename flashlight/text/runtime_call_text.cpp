#include "flashlight/text/runtime_call_text.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include "composit/ir/error.h"
#include "flashlight/text/literal.h"

namespace flashlight::text {
namespace {

using composit::Attribute;
using composit::DType;
using composit::SchemaArgument;

constexpr std::string_view kAten = "aten", kSpecial = "special";

std::string braces(const std::vector<std::string>& items) {
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

std::string integer(int64_t value) { return literal(composit::Scalar::Value(value), DType::int64); }

std::string boolean(bool value) { return value ? "true" : "false"; }

std::string option_text(const Attribute& option, DType dtype) {
  if (const auto* value = option.get_if<bool>()) return boolean(*value);
  if (const auto* value = option.get_if<int64_t>()) return integer(*value);
  if (const auto* value = option.get_if<double>()) return literal(*value, DType::float64);
  if (const auto* value = option.get_if<composit::Scalar>()) return literal(value->value, dtype);
  if (const auto* value = option.get_if<std::string>()) return quoted(*value);
  std::vector<std::string> items;
  for (const Attribute& item : option.as<composit::List>().items)
    items.push_back(option_text(item, dtype));
  return braces(items);
}

// The name of the dtype in LibTorch.
std::string scalar_type(DType dtype) {
  // clang-format off
  switch (dtype) {
    case DType::bool_: return "at::kBool";
    case DType::uint8: return "at::kByte";
    case DType::int8: return "at::kChar";
    case DType::int16: return "at::kShort";
    case DType::int32: return "at::kInt";
    case DType::int64: return "at::kLong";
    case DType::float16: return "at::kHalf";
    case DType::bfloat16: return "at::kBFloat16";
    case DType::float32: return "at::kFloat";
    case DType::float64: return "at::kDouble";
    case DType::complex64: return "at::kComplexFloat";
    default: return "at::kComplexDouble";
  }
  // clang-format on
}

std::string scalar(const composit::Scalar& scalar) {
  if (const auto* value = std::get_if<bool>(&scalar.value)) return boolean(*value);
  if (const auto* value = std::get_if<int64_t>(&scalar.value)) return integer(*value);
  if (const auto* value = std::get_if<double>(&scalar.value))
    return literal(*value, DType::float64);
  const auto value = std::get<std::complex<double>>(scalar.value);
  return "c10::complex<double>(" + literal(value.real(), DType::float64) + ", " +
         literal(value.imag(), DType::float64) + ")";
}

// Writes data of those kinds that aten_call_of (loops/aten_call.h) accepts.
std::string data_text(const Attribute& data, const SchemaArgument& argument,
                      const std::string& device) {
  if (data.is_none()) return "std::nullopt";
  if (const auto* list = data.get_if<composit::List>()) {
    std::vector<std::string> items;
    for (const Attribute& item : list->items) items.push_back(data_text(item, argument, device));
    const bool sizes = argument.type == composit::ArgumentType::integer ||
                       argument.type == composit::ArgumentType::symint;
    return (sizes ? "at::IntArrayRef(" : "") + braces(items) + (sizes ? ")" : "");
  }
  if (const auto* value = data.get_if<bool>()) return boolean(*value);
  if (const auto* value = data.get_if<int64_t>()) return integer(*value);
  if (const auto* value = data.get_if<double>()) return literal(*value, DType::float64);
  if (const auto* value = data.get_if<std::string>()) return quoted(*value);
  if (const auto* value = data.get_if<DType>()) return scalar_type(*value);
  if (const auto* value = data.get_if<composit::Scalar>()) return scalar(*value);
  if (data.get_if<composit::Layout>() != nullptr) return "at::kStrided";
  if (data.get_if<composit::Device>() != nullptr) return device;
  COMPOSIT_ASSERT(data.get_if<composit::MemoryFormat>() != nullptr, "data that C++ cannot write");
  return "at::MemoryFormat::Contiguous";
}

class AtenArguments {
 public:
  AtenArguments(const TensorText& tensor, const std::string& device)
      : tensor_(tensor), device_(device) {}

  // Writes an argument as functions of at:: take it, tensors that may be absent as optionals.
  std::string text(const Attribute& option, const SchemaArgument& argument) const {
    if (!argument.is_tensor()) return data_text(option, argument, device_);
    if (!argument.list) {
      if (option.is_none() && argument.optional) return "std::nullopt";
      return tensor(option);
    }
    std::vector<std::string> items;
    for (const Attribute& item : option.as<composit::List>().items) items.push_back(tensor(item));
    return argument.optional_items ? "c10::List<std::optional<at::Tensor>>(" + braces(items) + ")"
                                   : "std::vector<at::Tensor>" + braces(items);
  }

 private:
  std::string tensor(const Attribute& option) const {
    if (option.is_none()) return "at::Tensor()";
    const std::vector<int64_t> numbers = composit::to_ints(option);
    return tensor_(static_cast<size_t>(numbers[0]), {numbers.begin() + 1, numbers.end()});
  }

  const TensorText& tensor_;
  const std::string& device_;
};

}  // namespace

std::string function_text(const RuntimeCall& call) {
  const std::string name(call.function.base_name());
  if (call.function.domain() == kAten) return "at::" + name;
  if (call.function.domain() == kSpecial) return "fl::each<special_functions::" + name + ">";
  return "fl::" + name;
}

std::string header_of(const RuntimeCall& call) {
  return "flashlight_" + std::string(call.function.domain()) + ".hpp";
}

std::string link_header_of(const RuntimeCall& call) {
  if (call.function.domain() != kAten) return "";
  return "ATen/ops/" + std::string(call.function.base_name()) + ".h";
}

std::vector<std::string> option_texts(const RuntimeCall& call, DType dtype) {
  std::vector<std::string> texts;
  for (const composit::NamedAttribute& option : call.options)
    texts.push_back(option_text(option.value, dtype));
  return texts;
}

Code reported(const Code& run) {
  Code all = code(
      Chain{{{"try", run},
             {"catch (const std::exception& error)", returned("fl::keep_message(error.what())")}}});
  all += returned("nullptr");
  return all;
}

std::string braces(const std::vector<int64_t>& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ", "));
}

std::string tensor_text(const std::string& pointer, const std::vector<int64_t>& sizes) {
  return "fl::tensor(" + pointer + ", " + braces(sizes) + ")";
}

std::vector<std::string> aten_arguments(const RuntimeCall& call, const TensorText& tensor,
                                        const std::string& device) {
  const AtenArguments arguments(tensor, device);
  std::vector<std::string> texts;
  for (size_t i = 0; i < call.options.size(); ++i)
    texts.push_back(arguments.text(call.options[i].value, call.schema->arguments[i]));
  return texts;
}

}  // namespace flashlight::text
