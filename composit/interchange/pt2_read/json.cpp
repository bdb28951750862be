#include "composit/interchange/pt2_read/json.h"

#include <cmath>
#include <limits>

#include "composit/ir/error.h"

namespace composit::pt2_read {
namespace {

constexpr int kDeepestJson = 200;  // a branch within a branch takes about ten

// Text of strings aside. What is nested without end would overflow the stack of those who walk it.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDeepestJson) return true;
  }
  return false;
}

[[noreturn]] void refuse_kind(const char* expected, const Json& received) {
  throw UserError("expected " + std::string(expected) + ", received " + shown(received));
}

}  // namespace

std::string shown(const Json& value) {
  constexpr size_t kLongest = 60;
  // Long values are not written out for a few letters of them.
  if (value.is_structured() && value.size() > kLongest)
    return value.is_array() ? "a list of " + std::to_string(value.size())
                            : "an object of " + std::to_string(value.size());
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

Json parse_json(std::string_view text, const std::string& place) {
  if (is_too_deep(text)) throw UserError(place + ": nested too deeply");
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw UserError(place + ": " + error.what());
  }
}

const Json* find_field(const Json& object, const char* key) {
  const auto found = object_of(object).find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json& field(const Json& object, const char* key) {
  if (const Json* found = find_field(object, key)) return *found;
  throw UserError("'" + std::string(key) + "' is missing in " + shown(object));
}

const Json& list_of(const Json& value) {
  if (!value.is_array()) refuse_kind("a list", value);
  return value;
}

const Json& object_of(const Json& value) {
  if (!value.is_object()) refuse_kind("an object", value);
  return value;
}

const std::string& text_of(const Json& value) {
  if (!value.is_string()) refuse_kind("text", value);
  return value.get_ref<const std::string&>();
}

int64_t int_of(const Json& value) {
  const bool fits = !value.is_number_unsigned() ||
                    value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()};
  if (!value.is_number_integer() || !fits) refuse_kind("an integer", value);
  return value.get<int64_t>();
}

bool truth_of(const Json& value) {
  if (!value.is_boolean()) refuse_kind("true or false", value);
  return value.get<bool>();
}

double real_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  refuse_kind("a number", value);
}

std::pair<std::string_view, const Json*> only_field(const Json& object) {
  if (!object.is_object() || object.size() != 1) refuse_kind("an object with one key", object);
  return {object.begin().key(), &object.begin().value()};
}

}  // namespace composit::pt2_read
