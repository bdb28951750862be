// Reads programs of Knossos' language.
//
//   const Program program = parse(text, "relu3.ks");
//   print(program) == text;                             // up to white space and comments
//
// UserError: "relu3.ks:3:7: expected a type, received 'Flot'".
#pragma once

#include <string>
#include <string_view>

#include "frontends/ks/syntax.h"

namespace flashlight::ks {

Program parse(std::string_view text, const std::string& file = "<ks>");
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
