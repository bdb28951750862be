#include "flashlight/structure.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "composit/ir/literal.h"
#include "flashlight/structure_numbers.h"

namespace flashlight {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Structure::Kind;
using composit::UserError;

// A tensor is "tensor", an absent one null, a value {"value": text}, a list an array, a tuple
// {"tuple": […]}, a map
// {"map": [[key, child], …]}.
Json to_json(const Structure& structure) {
  Json children = Json::array();
  for (size_t i = 0; i < structure.children.size(); ++i) {
    Json child = to_json(structure.children[i]);
    children.push_back(structure.kind == Kind::map ? Json::array({structure.keys[i], child})
                                                   : child);
  }
  switch (structure.kind) {
    case Kind::tensor:
      return "tensor";
    case Kind::absent:
      return nullptr;
    case Kind::value:
      return {{"value", structure.text}};
    case Kind::list:
      return children;
    case Kind::tuple:
      return {{"tuple", children}};
    case Kind::map:
      return {{"map", children}};
  }
  return nullptr;
}

constexpr int kDeepest = 64;

Structure from_json(const Json& json, int depth = 0);

std::vector<Structure> all_from_json(const Json& json, int depth) {
  std::vector<Structure> structures;
  for (const Json& child : json) structures.push_back(from_json(child, depth));
  return structures;
}

Structure from_json(const Json& json, int depth) {
  if (depth > kDeepest) throw UserError("[structure] nested more than 64 levels deep");
  if (json.is_null()) return {Kind::absent, {}, {}, {}};
  if (json == "tensor") return {};
  if (json.is_array()) return {Kind::list, {}, {}, all_from_json(json, depth + 1)};
  if (json.is_object() && json.size() == 1) {
    const auto member = json.begin();
    const std::string& key = member.key();
    const Json& content = member.value();
    if (key == "value" && content.is_string())
      return {Kind::value, content.get<std::string>(), {}, {}};
    if (key == "tuple" && content.is_array())
      return {Kind::tuple, {}, {}, all_from_json(content, depth + 1)};
    if (key == "map" && content.is_array()) {
      Structure map{Kind::map, {}, {}, {}};
      for (const Json& entry : content) {
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string())
          throw UserError("[structure] expected [key, child] in a map, received " + entry.dump());
        map.keys.push_back(entry[0].get<std::string>());
        map.children.push_back(from_json(entry[1], depth + 1));
      }
      return map;
    }
  }
  throw UserError("[structure] expected a structure, received " + json.dump().substr(0, 80));
}

// A part without children, and where it is.
struct Leaf {
  std::string path;
  const Structure* part;
};

void collect_leaves(const Structure& structure, const std::string& path,
                    std::vector<Leaf>& leaves) {
  if (structure.children.empty()) leaves.push_back({path, &structure});
  // An optional with a value is a tuple of one. Names leave that level out.
  const bool optional = structure.kind == Kind::tuple && structure.children.size() == 1;
  for (size_t i = 0; i < structure.children.size(); ++i) {
    const std::string step = structure.kind == Kind::map ? structure.keys[i] : std::to_string(i);
    collect_leaves(structure.children[i], optional ? path : path + "." + step, leaves);
  }
}

// Arguments of a call are "input_0", "input_1". If a language has keywords, a call is a tuple of
// positional arguments and a map of the others: "input_0", "input_mask".
std::vector<Leaf> leaves_of(const Structure& structure, const std::string& prefix) {
  std::vector<Leaf> leaves;
  if (structure.kind != Kind::tuple) {
    collect_leaves(structure, prefix, leaves);
    return leaves;
  }
  const auto& children = structure.children;
  const bool keywords =
      children.size() == 2 && children[0].kind == Kind::tuple && children[1].kind == Kind::map;
  const Structure& by_place = keywords ? children[0] : structure;
  for (size_t i = 0; i < by_place.children.size(); ++i)
    collect_leaves(by_place.children[i], prefix + "_" + std::to_string(i), leaves);
  for (size_t i = 0; keywords && i < children[1].children.size(); ++i)
    collect_leaves(children[1].children[i], prefix + "_" + children[1].keys[i], leaves);
  return leaves;
}

// The number that a value is.
std::optional<double> number_of(const Structure& part) {
  if (part.kind != Kind::value || part.text.empty()) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(part.text.c_str(), &end);
  return *end == '\0' ? std::optional(number) : std::nullopt;
}

// The number as text of the same type, and of the same language.
std::string text_like(const std::string& old, double number) {
  if (is_integer_text(old)) return std::to_string(static_cast<long long>(number));
  std::string text;
  if (old.find("0x") == old.npos) {
    composit::append_float(text, number);
    return text;
  }
  char exact[40];
  std::snprintf(exact, sizeof exact, "%a", number);
  return exact;
}

}  // namespace

std::string str(const Structure& structure) { return to_json(structure).dump(); }

Structure parse_structure(std::string_view text) {
  try {
    return from_json(Json::parse(text));
  } catch (const Json::parse_error& error) {
    throw UserError(std::string("[structure] ") + error.what());
  }
}

std::vector<std::string> tensor_names(const Structure& structure, const std::string& prefix) {
  std::vector<std::string> names;
  for (const Leaf& leaf : leaves_of(structure, prefix))
    if (leaf.part->kind == Kind::tensor) names.push_back(leaf.path);
  return names;
}

std::map<std::string, double> numbers_in(const Structure& structure, const std::string& prefix) {
  std::map<std::string, double> numbers;
  for (const Leaf& leaf : leaves_of(structure, prefix))
    if (const auto number = number_of(*leaf.part)) numbers.emplace(leaf.path, *number);
  return numbers;
}

std::map<std::string, std::string> number_texts_in(const Structure& structure,
                                                   const std::string& prefix) {
  std::map<std::string, std::string> texts;
  for (const Leaf& leaf : leaves_of(structure, prefix))
    if (number_of(*leaf.part)) texts.emplace(leaf.path, leaf.part->text);
  return texts;
}

bool is_integer_text(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

Structure with_numbers_in(const Structure& structure, const std::string& prefix,
                          const NumberOfPath& number_of_path) {
  Structure result = structure;
  for (const Leaf& leaf : leaves_of(result, prefix)) {
    const auto old = number_of(*leaf.part);
    const auto now = old ? number_of_path(leaf.path) : std::nullopt;
    if (!now || *now == *old) continue;
    std::string& text = const_cast<Structure*>(leaf.part)->text;  // a part of `result`
    text = text_like(text, *now);
  }
  return result;
}

bool same_but_for_numbers(const Structure& a, const Structure& b) {
  if (number_of(a) && number_of(b)) return true;
  if (a.kind != b.kind || a.text != b.text || a.keys != b.keys) return false;
  return std::equal(a.children.begin(), a.children.end(), b.children.begin(), b.children.end(),
                    same_but_for_numbers);
}

}  // namespace flashlight
