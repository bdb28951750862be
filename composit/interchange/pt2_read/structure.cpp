#include "composit/interchange/pt2_read/structure.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/ir/literal.h"

namespace composit::pt2_read {
namespace {

using Kind = Structure::Kind;

constexpr int64_t kSpecVersion = 1;
constexpr int kDeepestSpec = 64;

std::string key_text(const Json& key) { return key.is_string() ? text_of(key) : key.dump(); }

// The keys of an object with so many children; nothing for one that has places instead.
std::vector<std::string> keys_in(const Json& list, size_t count) {
  std::vector<std::string> keys;
  if (!list.is_array() || list.size() != count) return keys;
  const auto is_structured = [](const Json& key) { return key.is_structured(); };
  if (std::any_of(list.begin(), list.end(), is_structured)) return keys;
  for (const Json& key : list) keys.push_back(key_text(key));
  return keys;
}

class SpecReader {
 public:
  SpecReader(const std::vector<Structure>& leaves, const Json& fields)
      : leaves_(leaves), fields_(fields) {}

  Structure read(const Json& spec, int depth = 0) {
    if (depth > kDeepestSpec) throw UserError("a structure nested more than 64 levels deep");
    const Json& children = list_of(field(spec, "children_spec"));
    const Json* type = find_field(spec, "type");
    if (type == nullptr) return leaf();
    const std::string& name = text_of(*type);
    Structure structure;
    if (name == "builtins.list")
      structure.kind = Kind::list;
    else if (name == "builtins.tuple")
      structure.kind = Kind::tuple;
    else
      structure.keys = keys_of(spec, name, children.size());
    if (structure.kind == Kind::tensor)
      structure.kind = structure.keys.empty() && name != "builtins.dict" ? Kind::tuple : Kind::dict;
    for (const Json& child : children) structure.children.push_back(read(child, depth + 1));
    if (structure.kind == Kind::dict && structure.keys.size() != structure.children.size())
      throw UserError("a dict of " + std::to_string(structure.children.size()) +
                      " values without "
                      "as many keys");
    return structure;
  }

  void expect_end() const {
    if (next_ != leaves_.size())
      throw UserError("expected a structure of " + std::to_string(leaves_.size()) +
                      " leaves, received one of " + std::to_string(next_));
  }

 private:
  Structure leaf() {
    if (next_ == leaves_.size())
      throw UserError("expected a structure of " + std::to_string(leaves_.size()) +
                      " leaves, received one of more");
    return leaves_[next_++];
  }

  // The context is text, which for dicts and their like is a JSON list of keys.
  std::vector<std::string> keys_of(const Json& spec, const std::string& type, size_t count) const {
    const Json* context = find_field(spec, "context");
    if (context == nullptr || !context->is_string()) return {};
    const Json content = Json::parse(text_of(*context), nullptr, /*allow_exceptions=*/false);
    if (type == "collections.namedtuple" && content.is_string() && fields_.is_object()) {
      const auto found = fields_.find(text_of(content));
      return found == fields_.end() ? std::vector<std::string>()
                                    : keys_in(field(*found, "field_names"), count);
    }
    const bool has_factory = type == "collections.defaultdict" && content.is_array() &&
                             content.size() == 2 && content[1].is_array();
    return keys_in(has_factory ? content[1] : content, count);
  }

  const std::vector<Structure>& leaves_;
  const Json& fields_;
  size_t next_ = 0;
};

std::string python_text(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    if (c == '\n')
      quoted += "\\n";
    else
      quoted += c;
  }
  return quoted + "'";
}

// As Python writes it.
std::string literal_of(const pt2::Json& constant) {
  const std::string& kind = constant.begin().key();
  const pt2::Json& value = constant.begin().value();
  if (kind == "as_bool") return value.get<bool>() ? "True" : "False";
  if (kind == "as_int") return std::to_string(value.get<int64_t>());
  if (kind == "as_string") return python_text(value.get<std::string>());
  if (value == "NaN") return "nan";
  if (value.is_string()) return value == "Infinity" ? "inf" : "-inf";
  std::string text;
  append_float(text, value.get<double>());
  return text;
}

pt2::Json json_of(const Structure& structure) {
  pt2::Json children = pt2::Json::array();
  for (size_t i = 0; i < structure.children.size(); ++i) {
    pt2::Json child = json_of(structure.children[i]);
    children.push_back(structure.kind == Kind::dict
                           ? pt2::Json::array({structure.keys[i], std::move(child)})
                           : std::move(child));
  }
  switch (structure.kind) {
    case Kind::tensor:
      return "tensor";
    case Kind::constant:
      if (structure.constant.contains("as_none")) return nullptr;
      return {{"value", literal_of(structure.constant)}};
    case Kind::list:
      return children;
    case Kind::tuple:
      return {{"tuple", children}};
    case Kind::dict:
      return {{"map", children}};
  }
  return nullptr;
}

}  // namespace

Structure structure_of_spec(const std::string& text, const std::vector<Structure>& leaves,
                            const Json& fields) {
  const Json spec = parse_json(text, "a structure");
  if (!spec.is_array() || spec.size() != 2 || spec[0] != kSpecVersion)
    throw UserError("expected the structure of arguments or results, received " + shown(spec));
  SpecReader reader(leaves, fields);
  Structure structure = reader.read(spec[1]);
  reader.expect_end();
  return structure;
}

std::string text_of(const Structure& structure) { return json_of(structure).dump(); }

}  // namespace composit::pt2_read
