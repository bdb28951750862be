#include "flashlight/structure.h"

#include <nlohmann/json.hpp>

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

void collect_names(const Structure& structure, const std::string& path,
                   std::vector<std::string>& names) {
  if (structure.kind == Kind::tensor) names.push_back(path);
  // An optional with a value is a tuple of one. Names leave that level out.
  const bool optional = structure.kind == Kind::tuple && structure.children.size() == 1;
  for (size_t i = 0; i < structure.children.size(); ++i) {
    const std::string step = structure.kind == Kind::map ? structure.keys[i] : std::to_string(i);
    collect_names(structure.children[i], optional ? path : path + "." + step, names);
  }
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
  if (structure.kind != Kind::tuple) {
    collect_names(structure, prefix, names);
    return names;
  }
  // Arguments of a call are "input_0", "input_1". If a language has keywords, a call is a tuple of
  // positional arguments and a map of the others: "input_0", "input_mask".
  const auto& children = structure.children;
  const bool keywords =
      children.size() == 2 && children[0].kind == Kind::tuple && children[1].kind == Kind::map;
  const Structure& by_place = keywords ? children[0] : structure;
  for (size_t i = 0; i < by_place.children.size(); ++i)
    collect_names(by_place.children[i], prefix + "_" + std::to_string(i), names);
  for (size_t i = 0; keywords && i < children[1].children.size(); ++i)
    collect_names(children[1].children[i], prefix + "_" + children[1].keys[i], names);
  return names;
}

}  // namespace flashlight
