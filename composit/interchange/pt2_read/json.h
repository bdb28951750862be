// JSON of files that others wrote: every access says what it expects, and where it is not so.
//
//   const Json program = parse_json(text, "models/model.json");
//   int_of(field(field(program, "schema_version"), "major"));
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace composit::pt2_read {

using Json = nlohmann::json;  // by key, in a map: files have tables of thousands of names

// UserError with `place` for text that is no JSON, or nested too deeply to be a program.
Json parse_json(std::string_view text, const std::string& place);

// A value for a message, cut to a readable length.
std::string shown(const Json& value);

// UserError where `object` is none, or lacks the key.
const Json& field(const Json& object, const char* key);
// nullptr where it lacks the key, or has null there.
const Json* find_field(const Json& object, const char* key);

// UserError for another kind of value.
const Json& list_of(const Json& value);
const Json& object_of(const Json& value);
const std::string& text_of(const Json& value);
int64_t int_of(const Json& value);
bool truth_of(const Json& value);
// A number; NaN and infinities stand there as text.
double real_of(const Json& value);

// An object with one key: the key, and what it has.
std::pair<std::string_view, const Json*> only_field(const Json& object);

}  // namespace composit::pt2_read
