#include "composit/op/options.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/ir/literal.h"

namespace composit {
namespace {

bool serves(const Option& option, Option::Use use) {
  return option.use == Option::Use::both || use == Option::Use::both || option.use == use;
}

// "no option", "the option x", "one of the options x, y"
std::string expected_options(const OptionTable& table, Option::Use use) {
  std::string names;
  int count = 0;
  for (const Option& option : table) {
    if (!serves(option, use)) continue;
    names += (count++ > 0 ? ", " : "") + option.name;
  }
  if (count == 0) return "no option";
  return (count == 1 ? "the option " : "one of the options ") + names;
}

}  // namespace

std::string type_name(const OptionValue& value) {
  static const char* const kNames[] = {"true or false", "an integer", "a number", "text"};
  return kNames[value.index()];
}

std::string text_of(const OptionValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* characters = std::get_if<std::string>(&value)) return "'" + *characters + "'";
  std::string text;
  append_float(text, std::get<double>(value));
  return text;
}

void refuse_value(const Option& option, const std::string& received, const std::string& backend) {
  throw UserError("[" + backend + "] option '" + option.name + "': expected " +
                  type_name(option.fallback) + ", received " + received);
}

const Option& find_option(const OptionTable& table, const std::string& name, Option::Use use,
                          const std::string& backend) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Option& option) {
    return option.name == name && serves(option, use);
  });
  if (found == table.end()) {
    const bool exists = std::any_of(table.begin(), table.end(),
                                    [&](const Option& option) { return option.name == name; });
    const std::string where = use == Option::Use::programs
                                  ? ", an option of code that is called in this process"
                                  : ", an option of programs that are built elsewhere";
    throw UserError("[" + backend + "] expected " + expected_options(table, use) + ", received '" +
                    name + "'" + (exists ? where : ""));
  }
  return *found;
}

Options complete(Options given, const OptionTable& table, Option::Use use,
                 const std::string& backend) {
  for (auto& [name, value] : given) {
    const Option& option = find_option(table, name, use, backend);
    const auto* integer = std::get_if<int64_t>(&value);
    if (integer != nullptr && std::holds_alternative<double>(option.fallback))
      value = static_cast<double>(*integer);
    if (value.index() != option.fallback.index()) refuse_value(option, text_of(value), backend);
  }
  for (const Option& option : table)
    if (serves(option, use)) given.emplace(option.name, option.fallback);
  return given;
}

OptionValue parse_option(const Option& option, const std::string& text,
                         const std::string& backend) {
  if (std::holds_alternative<std::string>(option.fallback)) return text;
  if (std::holds_alternative<int64_t>(option.fallback))
    if (const auto integer = parse_int(text)) return *integer;
  if (std::holds_alternative<double>(option.fallback)) {
    if (const auto number = parse_float(text)) return *number;
    if (const auto integer = parse_int(text)) return static_cast<double>(*integer);
  }
  if (std::holds_alternative<bool>(option.fallback) && (text == "true" || text == "false"))
    return text == "true";
  refuse_value(option, "'" + text + "'", backend);
}

}  // namespace composit
