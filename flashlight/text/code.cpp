#include "flashlight/text/code.h"

#include <algorithm>

namespace flashlight::text {
namespace {

constexpr const char* kIndent = "  ";

void append_indented(std::vector<std::string>& lines, const Code& body) {
  for (const std::string& line : body.lines) lines.push_back(line.empty() ? line : kIndent + line);
}

}  // namespace

Code& Code::operator+=(const Code& more) {
  lines.insert(lines.end(), more.lines.begin(), more.lines.end());
  statements += more.statements;
  return *this;
}

Code statement(std::string line) { return {{std::move(line)}, 1}; }

Code comment(const std::string& text) { return {{"// " + text}, 0}; }

Code braced(const std::string& header, const Code& body, const std::string& end) {
  Code code = {{header.empty() ? "{" : header + " {"}, 1};
  append_indented(code.lines, body);
  code.lines.push_back(end);
  return code;
}

Code block(const std::string& header, const Code& body) {
  const bool plain =
      body.statements == 1 && !body.lines[0].starts_with("//") && !body.lines[0].starts_with("#");
  if (!plain) return braced(header, body);
  Code code = {{header}, 1};
  append_indented(code.lines, body);
  return code;
}

Code if_else(const std::string& condition, const Code& then, const Code& otherwise) {
  Code code = braced("if (" + condition + ")", then);
  if (otherwise.lines[0].starts_with("if (")) {  // "else if"
    code.lines.back() = "} else " + otherwise.lines[0];
    code.lines.insert(code.lines.end(), otherwise.lines.begin() + 1, otherwise.lines.end());
    return code;
  }
  const Code rest = braced("} else", otherwise);
  code.lines.pop_back();
  code.lines.insert(code.lines.end(), rest.lines.begin(), rest.lines.end());
  return code;
}

Code call(const std::string& head, const std::vector<std::string>& arguments,
          const std::string& tail, size_t indent) {
  const auto fill = [&](std::string line, size_t column) {
    Code code = {{}, 1};
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string piece = arguments[i] + (i + 1 < arguments.size() ? "," : ")" + tail);
      const bool first =
          line.empty() || line.back() == '(' || line.find_first_not_of(' ') == std::string::npos;
      if (!first && indent + line.size() + 1 + piece.size() > kColumns) {
        code.lines.push_back(line);
        line = std::string(column, ' ') + piece;
      } else {
        line += (first ? "" : " ") + piece;
      }
    }
    code.lines.push_back(line);
    return code;
  };
  if (arguments.empty()) return statement(head + "()" + tail);
  Code aligned = fill(head + "(", head.size() + 1);
  Code broken = fill(std::string(4, ' '), 4);
  broken.lines.insert(broken.lines.begin(), head + "(");
  const bool fits =
      std::all_of(aligned.lines.begin(), aligned.lines.end(),
                  [&](const std::string& line) { return indent + line.size() <= kColumns; });
  // As clang-format weighs them.
  return fits && aligned.lines.size() < broken.lines.size() + 3 ? aligned : broken;
}

Code definition(const Function& function) {
  Code code = function.heading;
  code += call(function.specifiers + "void " + function.name, function.parameters, " {", 0);
  append_indented(code.lines, function.body);
  code.lines.push_back("}");
  return code;
}

Code declaration(const Function& function) {
  return call(function.specifiers + "void " + function.name, function.parameters, ";", 0);
}

std::string text_without_name(Function function) {
  function.name.clear();
  function.heading = {};
  return str(definition(function));
}

std::string str(const Code& code, size_t indent) {
  std::string text;
  for (const std::string& line : code.lines)
    text += (line.empty() ? "" : std::string(indent, ' ')) + line + "\n";
  return text;
}

}  // namespace flashlight::text
