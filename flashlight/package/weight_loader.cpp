#include "flashlight/package/weight_loader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "flashlight/text/code.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"

namespace flashlight::package {
namespace {

using Weights = std::vector<StoredWeight>;

constexpr size_t kMaxLines = 50;      // of a function
constexpr size_t kMinPartLines = 10;  // for a function of its own

// The context of code: the object it fills, the variable with the start of names, loops around it.
struct Place {
  std::string object;
  std::string module;
  size_t loops = 0;
};

std::string numbered(const std::string& name, size_t number) {
  return number == 0 ? name : name + "_" + std::to_string(number + 1);
}

// "encoder_layer[0]" of "encoder_layer[0].bias"; nothing of "bias".
std::string struct_of(const StoredWeight& weight) {
  const size_t dot = weight.member.find('.');
  return dot == std::string::npos ? "" : weight.member.substr(0, dot);
}

// "encoder_layer" of "encoder_layer[0]".
std::string array_of(const std::string& element) { return element.substr(0, element.find('[')); }

Weights inside(Weights weights) {
  for (StoredWeight& weight : weights) weight.member.erase(0, weight.member.find('.') + 1);
  return weights;
}

// The start that all names have in common, up to a dot.
std::string common_module(const Weights& weights) {
  std::string common = weights[0].tensor;
  for (const StoredWeight& weight : weights) {
    const auto end =
        std::mismatch(common.begin(), common.end(), weight.tensor.begin(), weight.tensor.end());
    common.erase(end.first, common.end());
  }
  return common.substr(0, common.rfind('.') + 1);
}

Weights without(const std::string& module, Weights weights) {
  for (StoredWeight& weight : weights) weight.tensor.erase(0, module.size());
  return weights;
}

bool same(const Weights& x, const Weights& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& a, const auto& b) {
    return a.member == b.member && a.tensor == b.tensor && a.type == b.type;
  });
}

// The names as text before and after a number that counts up from `first`.
struct Counted {
  std::string before, after;
  int first;
};
std::optional<Counted> counted(const std::vector<std::string>& names) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const std::string& sample = names[0];
  for (size_t begin = 0; begin < sample.size(); ++begin) {
    if (!is_digit(sample[begin]) || (begin > 0 && is_digit(sample[begin - 1]))) continue;
    size_t end = begin;
    while (end < sample.size() && is_digit(sample[end])) ++end;
    if (end - begin > 6) continue;
    const Counted found = {sample.substr(0, begin), sample.substr(end),
                           std::stoi(sample.substr(begin, end - begin))};
    int number = found.first;
    if (std::all_of(names.begin(), names.end(), [&](const std::string& name) {
          return name == found.before + std::to_string(number++) + found.after;
        }))
      return found;
  }
  return std::nullopt;
}

Code fill(const Weights& weights, const Place& place);

// weights.bias = file.tensor<float>("bias", {3});
Code assignment(const StoredWeight& weight, const Place& place) {
  std::string sizes;
  for (int64_t size : weight.type.sizes)
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  const std::string name =
      (place.module.empty() ? "" : place.module + " + ") + quoted(weight.tensor);
  return call({.target = place.object + "." + weight.member,
               .function = "file.tensor<" + type_name(weight.type.dtype) + ">",
               .arguments = {name, "{" + sizes + "}"}});
}

// Writes the start of the names of element `index`; adds lines that it needs to `before`.
std::string module_name(const std::vector<std::string>& modules, const std::string& array,
                        const std::string& index, const Place& place, Code& before) {
  const std::string start = place.module.empty() ? "" : place.module + " + ";
  if (const auto number = counted(modules)) {
    const std::string value =
        number->first == 0 ? index : index + " + " + std::to_string(number->first);
    return start + quoted(number->before) + " + std::to_string(" + value + ") + " +
           quoted(number->after);
  }
  const std::string list = array + "_modules";
  std::vector<std::string> names;
  for (const std::string& one : modules) names.push_back(quoted(one));
  before += code(List{"const char* const " + list + "[] = ", std::move(names)});
  return start + list + "[" + index + "]";
}

// A struct, by its name in the object around it.
struct Element {
  std::string name;
  Weights weights;
};

bool is_whole_array(const std::vector<Element>& elements) {
  for (size_t i = 0; i < elements.size(); ++i)
    if (elements[i].name != fmt::format("{}[{}]", array_of(elements[0].name), i)) return false;
  return elements.size() > 1;
}

// Fills a struct, or an array of them: in a loop if their names allow one.
Code fill_structs(const std::vector<Element>& elements, const Place& place) {
  Code code;
  std::vector<std::string> modules;
  std::vector<Weights> relative;
  for (const Element& element : elements) {
    modules.push_back(common_module(element.weights));
    relative.push_back(without(modules.back(), element.weights));
  }
  const bool alike = std::all_of(relative.begin(), relative.end(),
                                 [&](const Weights& one) { return same(one, relative[0]); });
  if (!alike || !is_whole_array(elements)) {
    for (const Element& element : elements)
      code += fill(element.weights, {place.object + "." + element.name, place.module, place.loops});
    return code;
  }
  const std::string index(1, static_cast<char>('i' + place.loops));
  const std::string module = numbered("module", place.loops);
  const std::string part = numbered("part", place.loops);
  const std::string name = module_name(modules, array_of(elements[0].name), index, place, code);
  Code body = text::assignment("auto& " + part,
                               place.object + "." + array_of(elements[0].name) + "[" + index + "]");
  body += text::assignment("const std::string " + module, name);
  body += fill(relative[0], {part, module, place.loops + 1});
  code += block(For{"int", index, "0", std::to_string(elements.size())}, body);
  return code;
}

Code fill(const Weights& weights, const Place& place) {
  Code code;
  for (size_t begin = 0, end = 0; begin < weights.size(); begin = end) {
    const std::string array = array_of(struct_of(weights[begin]));
    if (array.empty()) {
      code += assignment(weights[end++], place);
      continue;
    }
    std::vector<Element> elements;
    for (; end < weights.size() && array_of(struct_of(weights[end])) == array; ++end) {
      const std::string name = struct_of(weights[end]);
      if (elements.empty() || elements.back().name != name) elements.push_back({name, {}});
      elements.back().weights.push_back(weights[end]);
    }
    for (Element& element : elements) element.weights = inside(std::move(element.weights));
    code += fill_structs(elements, place);
  }
  return code;
}

// Writes a function that fills all, after others for parts of the model that are too long.
class Loader {
 public:
  // The names of `weights` have their first `depth` components in common.
  Code body(const Weights& weights, size_t depth) {
    const Code whole = fill(weights, {"weights", "", 0});
    const std::vector<Weights> parts = split(weights, depth);
    if (length(whole, kIndent) <= kMaxLines || depth > 8) return whole;
    if (parts.size() == 1) return body(weights, depth + 1);
    Code code;
    for (const Weights& part : parts) {
      const Code inner = body(part, depth + 1);
      if (length(inner, kIndent) < kMinPartLines) {
        code += inner;
        continue;
      }
      const std::string name = "load_" + identifier(start_of(part[0].tensor, depth));
      functions_ += blank();
      functions_ += definition({.name = name,
                                .parameters = {"const fl::Safetensors& file", "Weights& weights"},
                                .body = inner});
      code += statement(name + "(file, weights);");
    }
    return code;
  }

  const Code& functions() const { return functions_; }

 private:
  // The first `depth` + 1 components: "layer1.0" of "layer1.0.conv1.weight".
  static std::string start_of(const std::string& name, size_t depth) {
    size_t end = name.find('.');
    for (size_t i = 0; i < depth && end != std::string::npos; ++i) end = name.find('.', end + 1);
    return name.substr(0, end);
  }

  // Groups weights by name start, in order of appearance; a struct's array stays together.
  static std::vector<Weights> split(const Weights& weights, size_t depth) {
    std::vector<std::string> starts;
    std::vector<Weights> parts;
    for (const StoredWeight& weight : weights) {
      const std::string start = start_of(weight.tensor, depth);
      const auto known = std::find(starts.begin(), starts.end(), start);
      if (known == starts.end()) {
        starts.push_back(start);
        parts.push_back({weight});
      } else {
        parts[static_cast<size_t>(known - starts.begin())].push_back(weight);
      }
    }
    return parts;
  }

  Code functions_;
};

}  // namespace

Code load_weights(const std::vector<StoredWeight>& weights, const Code& more) {
  Loader loader;
  Code body = declaration("Weights", "weights");
  body += loader.body(weights, 0);
  body += more;
  body += statement("return weights;");
  Code code = loader.functions();
  code += blank();
  code += braced("Weights load_weights(const fl::Safetensors& file)", body);
  return code;
}

}  // namespace flashlight::package
