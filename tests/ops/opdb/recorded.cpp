#include "tests/ops/opdb/recorded.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "composit/io/safetensors.h"
#include "composit/ir/error.h"

namespace composit::opdb {
namespace {

using nlohmann::json;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& folder)
      : stored_(read_safetensors(folder / "tensors.safetensors")) {}

  RecordedCall call(const json& written) {
    const std::string name = written.at("op");
    const Operation& operation = operation_named(name);
    places_.clear();
    std::vector<ArgumentValue> arguments;
    for (const SchemaArgument& one : operation.schema.arguments)
      arguments.push_back(argument(one, written.at("arguments")));
    RecordedCall call{&operation,
                      name,
                      written.at("code"),
                      Call(operation.schema, std::move(arguments)),
                      std::move(places_),
                      arrays(written.at("results")),
                      {},
                      arrays(written.at("cotangents")),
                      {}};
    if (!written.at("meta").is_null()) call.meta = written.at("meta");
    complete_values(call);
    if (!call.cotangents.empty()) call.gradients = gradients(written, call.call.tensors().size());
    return call;
  }

 private:
  Array array(const json& number) const {
    return number.is_null() ? Array() : stored_.tensors.at(std::to_string(number.get<int>()));
  }
  std::vector<Array> arrays(const json& numbers) const {
    std::vector<Array> found;
    if (numbers.is_null()) return found;
    for (const json& number : numbers) found.push_back(array(number));
    return found;
  }

  // `gradients` names the tensors among the arguments, numbers in their place left out.
  std::vector<Array> gradients(const json& written, size_t places) const {
    std::vector<Array> by_place(places);
    size_t tensor = 0;
    for (size_t place = 0; place < places; ++place)
      if (is_recorded_[place]) by_place[place] = array(written.at("gradients").at(tensor++));
    return by_place;
  }

  ArgumentValue argument(const SchemaArgument& argument, const json& given) {
    if (!given.contains(argument.name)) return missing(argument);
    const json& value = given.at(argument.name);
    if (!argument.is_tensor()) return data(value);
    if (value.is_object() && value.contains("tensor"))
      return tensor(argument.name, value.at("tensor"));
    if (value.is_object() && value.contains("tensors")) {
      LazyTensors items;
      for (const json& number : value.at("tensors"))
        items.push_back(tensor(argument.name + std::to_string(items.size()), number));
      return items;
    }
    if (value.is_array()) return LazyTensors();  // an empty list
    places_.emplace_back();
    return value.is_null() ? ArgumentValue(LazyTensor()) : ArgumentValue(data(value));
  }
  ArgumentValue missing(const SchemaArgument& argument) {
    if (!argument.is_tensor()) return default_of(argument).value();
    places_.emplace_back();
    return LazyTensor();
  }
  LazyTensor tensor(const std::string& name, const json& number) {
    places_.push_back(array(number));
    return number.is_null() ? LazyTensor() : input(name, places_.back().type());
  }

  static double number(const json& text) { return std::stod(text.get<std::string>()); }

  static Attribute data(const json& value) {
    if (value.is_null()) return {};
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_integer()) return value.get<int64_t>();
    if (value.is_string()) return value.get<std::string>();
    if (value.is_array()) return list(value);
    const std::string& kind = value.begin().key();
    const json& content = value.begin().value();
    if (kind == "float") return number(content);
    if (kind == "complex") return std::complex<double>(number(content[0]), number(content[1]));
    const std::string text = content;
    if (kind == "dtype") return dtype_from_name(text).value();
    if (kind == "device") return device_from_name(text).value();
    if (kind == "layout") return layout_from_name(text).value();
    if (kind == "memory_format") return memory_format_from_name(text).value();
    throw UserError("expected an argument, received " + value.dump());
  }
  static Attribute list(const json& values) {
    List items;
    for (const json& value : values) items.items.push_back(data(value));
    items.element = common_kind(items);
    return items;
  }

  // Numbers in place of tensors are constants of the call.
  void complete_values(RecordedCall& call) {
    const LazyTensors& tensors = call.call.tensors();
    call.values.resize(tensors.size());
    is_recorded_.assign(tensors.size(), false);
    for (size_t i = 0; i < tensors.size(); ++i) {
      is_recorded_[i] = call.values[i].defined();
      if (!call.values[i].defined() && tensors[i].defined())
        call.values[i] = tensors[i].node->attribute("value").as<Array>();
    }
  }

  Safetensors stored_;
  std::vector<Array> places_;      // of the call being read
  std::vector<bool> is_recorded_;  // whether a place holds a tensor of the recording
};

Entry entry(const json& written) {
  Entry entry{written.at("name"),
              written.at("differentiable"),
              written.at("samples"),
              written.at("calls"),
              {}};
  for (const char* kind : {"without_row", "random", "not_plain", "refused", "too_large"})
    for (const std::string name : written.at(kind))
      entry.holes.push_back(
          name + (kind == std::string("without_row") ? "" : std::string(" (") + kind + ")"));
  return entry;
}

}  // namespace

Recorded read_recorded(const std::filesystem::path& folder) {
  std::ifstream file(folder / "calls.json");
  if (!file) throw UserError("cannot read " + (folder / "calls.json").string());
  const json written = json::parse(file);
  Reader reader(folder);
  Recorded recorded;
  for (const json& call : written.at("calls")) recorded.calls.push_back(reader.call(call));
  for (const json& one : written.at("entries")) recorded.entries.push_back(entry(one));
  return recorded;
}

}  // namespace composit::opdb
