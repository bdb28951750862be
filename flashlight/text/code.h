// C++ as a tree: statements, blocks, calls. Writers make it, the printer (printer.h) breaks its
// lines.
//
//   Code body = assignment("y[i]", "0.0f");
//   body = block(For{"int", "i", "0", "3"}, body);   // no braces: one statement
//   str(body) == "for (int i = 0; i < 3; ++i) y[i] = 0.0f;\n";
//
// Scalar expressions are texts that say where they can be broken. Bounds of loops, arguments and
// bodies of lambdas are parts of the tree: nothing is read out of text again.
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

// ---- what a tree is made of ---------------------------------------------------------------------

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
  bool has_type = false;  // whether the head names the type of the result
  Code body = {};
};
struct Call {
  using Argument = std::variant<std::string, Lambda, std::shared_ptr<const Call>>;
  std::string target = {};  // "const float sum", of an assignment; or empty
  std::string function;
  std::vector<Argument> arguments;
  std::string tail = ";";      // behind the closing parenthesis
  bool lambdas_apart = false;  // each lambda begins a line
};
struct Blank {};
struct List {  // "const int sizes[] = ", "1", "2"
  std::string head;
  std::vector<std::string> items;
};

// "for (int i = 0; i < 3; ++i)".
struct For {
  std::string type, variable, low, high;  // `type` is empty for a variable that is there already,
                                          // `high` for a loop that is left by break
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

// ---- how it is made -----------------------------------------------------------------------------

Code code(Node::Kind kind);
Code statement(std::string line);
Code comment(const std::string& text);
Code directive(const std::string& text);
Code blank();
Code declaration(const std::string& type, const std::string& name);
Code assignment(const std::string& target, const ExpressionText& value,
                const std::string& sign = "=");
Code returned(const ExpressionText& value);
// `header` before `body`, in braces unless that is one statement.
Code block(const Header& header, const Code& body);
Code braced(const Header& header, const Code& body, const std::string& end = "}");
Code if_else(const std::string& condition, const Code& then, const Code& otherwise);
// In as many lines as it takes.
Code call(const std::string& function, const std::vector<std::string>& arguments,
          const std::string& tail = ";");
Code call(Call call);

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

}  // namespace flashlight::text
