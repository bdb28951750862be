// Reads programs of Knossos' language.
//
//   const Program program = parse(text, "relu3.ks");
//   print(program) == text;                             // up to white space and comments
//
// UserError: "relu3.ks:3:7: expected a type, received 'Flot'".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/ks/syntax.h"

namespace flashlight::ks {

Program parse(std::string_view text, const std::string& file = "<ks>");
// The program in a file. UserError where it cannot be read, or has no program. Warns of
// `unknown_names`.
Program load(const std::string& file);
// Variables and functions that do not exist, with where they are read: "there is no function 'g'".
// A program may have them in functions that are never called.
std::vector<std::pair<Position, std::string>> unknown_names(const Program& program);
// The name of a function: "gmm", "[rev gmm]", "[gmm (Vec Float)]".
Name parse_name(std::string_view text);

// As text that parse reads, in lines of at most 100 characters where that is possible.
std::string print(const Program& program);
std::string print(const Type& type);
std::string print(const Name& name);
std::string print(const Expression& expr);

// "relu3.ks:3:7: what".
[[noreturn]] void refuse(const std::string& file, Position at, const std::string& what);

}  // namespace flashlight::ks
