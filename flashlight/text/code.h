// Lines of C++, indented as clang-format does.
//
//   Code body = statement("y[i] = 0.0f;");
//   body = block("for (int i = 0; i < 3; ++i)", body);   // no braces: one statement
#pragma once

#include <string>
#include <vector>

namespace flashlight::text {

struct Code {
  std::vector<std::string> lines;
  int statements = 0;

  Code& operator+=(const Code& more);
  bool empty() const { return statements == 0; }
};

Code statement(std::string line);
// A line that is no statement: "// softmax".
Code comment(const std::string& text);
// `header` before `body`, in braces unless that is one statement.
Code block(const std::string& header, const Code& body);
Code braced(const std::string& header, const Code& body, const std::string& end = "}");
Code if_else(const std::string& condition, const Code& then, const Code& otherwise);

// "head" + "(a, b, c)" + "tail" in as many lines as it takes, at an indentation of `indent`.
Code call(const std::string& head, const std::vector<std::string>& arguments,
          const std::string& tail, size_t indent);

// A function that returns nothing. Its name stands apart: equal functions are found by the rest.
struct Function {
  Code heading = {};            // comments above it
  std::string specifiers = {};  // "FLASHLIGHT_INLINE "
  std::string name = {};
  std::vector<std::string> parameters = {};
  Code body = {};
};
Code definition(const Function& function);
Code declaration(const Function& function);
// The same for two functions that differ in nothing but their names and headings.
std::string text_without_name(Function function);

constexpr size_t kColumns = 100;

std::string str(const Code& code, size_t indent = 0);

}  // namespace flashlight::text
