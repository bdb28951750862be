#include "tests/numpy/case.h"

#include <fstream>

namespace composit::numpy::test {
namespace {

std::vector<std::byte> bytes_of(const std::string& hexadecimal) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hexadecimal.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hexadecimal.substr(i, 2), nullptr, 16)));
  return bytes;
}

Array value_of(const Json& json) {
  const auto shape = json.at("shape").get<Ints>();
  const Type type =
      tensor_type(dtype_from_name(json.at("dtype").get<std::string>()).value(), shape);
  return Array::copy_of(type, bytes_of(json.at("bytes").get<std::string>()).data());
}

std::string text_of(const Json& json) {
  if (!json.is_object() || !json.contains("bytes")) return json.dump();
  return json.at("dtype").get<std::string>() + json.at("shape").dump();
}

std::optional<int64_t> bound(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<int64_t>());
}

IndexItem item_of(const Json& json) {
  if (json.is_null()) return newaxis;
  if (json.is_number()) return json.get<int64_t>();
  if (json.is_string()) return ellipsis;
  if (!json.contains("slice")) return Case::array_of(json);
  const Json& bounds = json.at("slice");
  return slice(bound(bounds[0]), bound(bounds[1]), bound(bounds[2]));
}

}  // namespace

std::string Case::text() const {
  std::string text = name + "(";
  const char* separator = "";
  for (const Json& arg : args) {
    text += separator + text_of(arg);
    separator = ", ";
  }
  for (const auto& [key, value] : named.items()) {
    text += separator + key + "=" + text_of(value);
    separator = ", ";
  }
  return text + ")";
}

NdArrays Case::arrays(size_t i) const {
  NdArrays result;
  for (const Json& item : args.at(i)) result.push_back(array_of(item));
  return result;
}

Indices Case::indices(size_t i) const {
  std::vector<IndexItem> items;
  for (const Json& item : args.at(i)) items.push_back(item_of(item));
  return items;
}

const Json& Case::at(const std::string& key) const {
  static const Json null;
  return named.contains(key) ? named.at(key) : null;
}

std::optional<int64_t> Case::one_axis(std::optional<int64_t> fallback) const {
  return named.contains("axis") ? bound(named.at("axis")) : fallback;
}

std::optional<DType> Case::dtype() const {
  const Json& json = at("dtype");
  return json.is_null() ? std::nullopt : dtype_from_name(json.get<std::string>());
}

NdArray Case::array_of(const Json& json) { return asarray(value_of(json)); }

Operand Case::operand_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (!json.contains("complex")) return array_of(json);
  const auto parts = json.at("complex").get<std::vector<double>>();
  return std::complex<double>(parts.at(0), parts.at(1));
}

Axes Case::axes_of(const Json& json) {
  if (json.is_null()) return none;
  if (json.is_number()) return json.get<int64_t>();
  return json.get<Ints>();
}

std::vector<Case> read_cases(const std::filesystem::path& file) {
  std::vector<Case> cases;
  for (const Json& json : Json::parse(std::ifstream(file))) {
    cases.push_back(
        {json.at("name"), json.at("args"), json.at("named"), json.value("error", ""), {}});
    for (const Json& result : json.value("results", Json::array()))
      cases.back().results.push_back(value_of(result));
  }
  return cases;
}

}  // namespace composit::numpy::test
