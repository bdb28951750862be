#include "composit/interchange/pt2/structure.h"

#include <algorithm>
#include <cstdlib>

#include "composit/interchange/pt2/arguments.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"

namespace composit::pt2 {
namespace {

using Kind = Structure::Kind;

constexpr int kDeepest = 64;

// A literal of Python or C++; what is none is text.
Json constant_of(const std::string& text) {
  if (text == "True" || text == "true") return {{"as_bool", true}};
  if (text == "False" || text == "false") return {{"as_bool", false}};
  if (text == "None") return none_json();
  if (const auto integer = parse_int(text)) return {{"as_int", *integer}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0') return {{"as_float", float_json(number)}};
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '\'' || text.front() == '"');
  return {{"as_string", quoted ? text.substr(1, text.size() - 2) : text}};
}

Structure read(const Json& json, int depth);

std::vector<Structure> read_all(const Json& json, int depth) {
  std::vector<Structure> structures;
  for (const Json& child : json) structures.push_back(read(child, depth));
  return structures;
}

Structure read(const Json& json, int depth) {
  if (depth > kDeepest) throw UserError("a structure nested more than 64 levels deep");
  if (json == "tensor") return {};
  if (json.is_null()) return {.kind = Kind::constant, .constant = none_json()};
  if (json.is_array()) return {.kind = Kind::list, .children = read_all(json, depth + 1)};
  if (json.is_object() && json.size() == 1) {
    const std::string& key = json.begin().key();
    const Json& content = json.begin().value();
    if (key == "value" && content.is_string())
      return {.kind = Kind::constant, .constant = constant_of(content.get<std::string>())};
    if (key == "tuple" && content.is_array())
      return {.kind = Kind::tuple, .children = read_all(content, depth + 1)};
    if (key == "map" && content.is_array()) {
      Structure map{.kind = Kind::dict};
      for (const Json& entry : content) {
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string())
          throw UserError("expected [key, child] in a map, received " + entry.dump());
        map.keys.push_back(entry[0].get<std::string>());
        map.children.push_back(read(entry[1], depth + 1));
      }
      return map;
    }
  }
  throw UserError("expected a structure, received " + json.dump().substr(0, 80));
}

void collect(const Structure& structure, std::vector<const Structure*>& leaves) {
  if (structure.kind == Kind::tensor || structure.kind == Kind::constant)
    leaves.push_back(&structure);
  for (const Structure& child : structure.children) collect(child, leaves);
}

Json spec_of(const Structure& structure) {
  Json children = Json::array();
  for (const Structure& child : structure.children) children.push_back(spec_of(child));
  Json type, context;  // of a leaf: null
  if (structure.kind == Kind::list) type = "builtins.list", context = "null";
  if (structure.kind == Kind::tuple) type = "builtins.tuple", context = "null";
  if (structure.kind == Kind::dict) type = "builtins.dict", context = Json(structure.keys).dump();
  return {{"type", type}, {"context", context}, {"children_spec", children}};
}

void expect_tensors(const Structure& structure, size_t tensors) {
  const auto leaves = leaves_of(structure);
  const auto count =
      static_cast<size_t>(std::count_if(leaves.begin(), leaves.end(), [](const Structure* leaf) {
        return leaf->kind == Kind::tensor;
      }));
  if (count != tensors)
    throw UserError("expected a structure of " + std::to_string(tensors) +
                    " tensors, received one of " + std::to_string(count));
}

Structure read_text(const std::string& text) {
  try {
    return read(Json::parse(text), 0);
  } catch (const Json::parse_error& error) {
    throw UserError(error.what());
  }
}

}  // namespace

Structure structure_of(const std::string& text, size_t tensors) {
  if (text.empty() && tensors == 1) return {};
  Structure structure =
      text.empty() ? Structure{.kind = Kind::tuple, .children = std::vector<Structure>(tensors)}
                   : read_text(text);
  expect_tensors(structure, tensors);
  return structure;
}

Structure call_structure(const std::string& text, size_t tensors) {
  Structure all = text.empty()
                      ? Structure{.kind = Kind::tuple, .children = std::vector<Structure>(tensors)}
                      : read_text(text);
  expect_tensors(all, tensors);
  // If a language has keywords, a call is a tuple and a map already.
  const auto& children = all.children;
  const bool keywords = all.kind == Kind::tuple && children.size() == 2 &&
                        children[0].kind == Kind::tuple && children[1].kind == Kind::dict;
  if (keywords) return all;
  if (all.kind != Kind::tuple) all = {.kind = Kind::tuple, .children = {all}};
  return {.kind = Kind::tuple, .children = {all, Structure{.kind = Kind::dict}}};
}

std::vector<const Structure*> leaves_of(const Structure& structure) {
  std::vector<const Structure*> leaves;
  collect(structure, leaves);
  return leaves;
}

std::string text_of_spec(const Structure& structure) {
  return Json::array({1, spec_of(structure)}).dump();
}

}  // namespace composit::pt2
