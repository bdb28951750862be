// C++ as a tree: statements, blocks, calls. Writers build it, the printer (printer.h) breaks it
// into lines.
//
//   Code body = assignment("y[i]", "0.0f");
//   body = block(For{"int", "i", "0", "3"}, body);   // no braces: one statement
//   str(body) == "for (int i = 0; i < 3; ++i) y[i] = 0.0f;\n";
//
// Scalar expressions are texts that know where a line may break. Bounds of loops, arguments and
// bodies of lambdas are nodes of the tree, so that no code has to parse text again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "flashlight/text/expression_text.h"

namespace flashlight::text {

struct Node;

// Statements in their order.
struct Code {
  std::vector<std::shared_ptr<const Node>> nodes;

  Code& operator+=(const Code& more);
  bool empty() const { return nodes.empty(); }
};

// ---- nodes --------------------------------------------------------------------------------------

struct Line {  // a statement that is never broken: "return nullptr;"
  std::string text;
};
struct Comment {  // broken between words
  std::string text;
};
struct Directive {  // of the preprocessor, at the margin
  std::string text;
};
struct Declaration {  // "EncoderLayerWeights encoder_layer[12];"
  std::string type, name;
};
struct Assignment {  // "const float x = y;", "x += y;"
  std::string target, sign;
  ExpressionText value;
};
struct Return {
  ExpressionText value;
};

struct Lambda {  // "[&](int i)"
  std::string head;
  bool has_type = false;  // the head names the type of the result
  Code body = {};
};
struct Call {
  using Argument = std::variant<std::string, Lambda, std::shared_ptr<const Call>>;
  std::string target = {};  // "const float sum", of an assignment; or empty
  std::string function;
  std::vector<Argument> arguments;
  std::string tail = ";";      // after the closing parenthesis
  bool lambdas_apart = false;  // each lambda begins a line
};
struct Blank {};
struct List {  // "const int sizes[] = ", "1", "2"
  std::string head;
  std::vector<std::string> items;
};

// "for (int i = 0; i < 3; ++i)".
struct For {
  std::string type, variable, low, high;  // `type` is empty if the variable is declared before,
                                          // `high` if a break ends the loop
  std::string step = {};                  // empty: 1
};
struct If {
  std::string condition;
};
using Header = std::variant<For, If, std::string>;
struct Block {
  Header header;
  Code body;
  std::string end = "}";
  bool braces = true;
};
// "if (x) {" ... "} else {" ... "}", "try {" ... "} catch (...) {" ... "}".
struct Chain {
  std::vector<std::pair<Header, Code>> parts;
};
struct Definition {  // of a function
  std::string head;  // "void relu"
  std::vector<std::string> parameters;
  Code body;
};

struct Node {
  using Kind = std::variant<Line, Comment, Directive, Declaration, Assignment, Return, Call, List,
                            Blank, Block, Chain, Definition>;
  Kind kind;
};

// ---- functions that make nodes ------------------------------------------------------------------

Code code(Node::Kind kind);
Code statement(std::string line);
Code comment(const std::string& text);
Code directive(const std::string& text);
Code blank();
Code declaration(const std::string& type, const std::string& name);
Code assignment(const std::string& target, const ExpressionText& value,
                const std::string& sign = "=");
Code returned(const ExpressionText& value);
// `header` and `body`, in braces unless the body is one statement.
Code block(const Header& header, const Code& body);
Code braced(const Header& header, const Code& body, const std::string& end = "}");
Code if_else(const std::string& condition, const Code& then, const Code& otherwise);
// A call in as many lines as it needs.
Code call(const std::string& function, const std::vector<std::string>& arguments,
          const std::string& tail = ";");
Code call(Call call);

// A function that returns void. Its name is a separate field: the rest shows equal functions.
struct Function {
  Code heading = {};            // comments above it
  std::string specifiers = {};  // "FLASHLIGHT_INLINE "
  std::string name = {};
  std::vector<std::string> parameters = {};
  Code body = {};
};
Code definition(const Function& function);
Code declaration(const Function& function);
// The text without name and heading: the same for two functions that differ in nothing else.
std::string text_without_name(Function function);

}  // namespace flashlight::text
