#include "flashlight/text/code.h"

#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"

namespace flashlight::text {

Code& Code::operator+=(const Code& more) {
  nodes.insert(nodes.end(), more.nodes.begin(), more.nodes.end());
  return *this;
}

Code code(Node::Kind kind) { return {{std::make_shared<const Node>(Node{std::move(kind)})}}; }

Code statement(std::string line) { return code(Line{std::move(line)}); }
Code comment(const std::string& text) { return code(Comment{one_line(text)}); }
Code directive(const std::string& text) { return code(Directive{text}); }
Code blank() { return code(Blank{}); }
Code declaration(const std::string& type, const std::string& name) {
  return code(Declaration{type, name});
}
Code assignment(const std::string& target, const ExpressionText& value, const std::string& sign) {
  return code(Assignment{target, sign, value});
}
Code returned(const ExpressionText& value) { return code(Return{value}); }

Code braced(const Header& header, const Code& body, const std::string& end) {
  return code(Block{header, body, end});
}

Code block(const Header& header, const Code& body) {
  return code(Block{.header = header, .body = body, .braces = body.nodes.size() != 1});
}

Code if_else(const std::string& condition, const Code& then, const Code& otherwise) {
  Chain chain = {{{If{condition}, then}}};
  const auto* other =
      otherwise.nodes.size() == 1 ? std::get_if<Chain>(&otherwise.nodes[0]->kind) : nullptr;
  if (other != nullptr)
    chain.parts.insert(chain.parts.end(), other->parts.begin(), other->parts.end());
  else
    chain.parts.push_back({"else", otherwise});
  return code(std::move(chain));
}

Code call(const std::string& function, const std::vector<std::string>& arguments,
          const std::string& tail) {
  return code(Call{"", function, {arguments.begin(), arguments.end()}, tail});
}
Code call(Call call) { return code(std::move(call)); }

Code definition(const Function& function) {
  Code all = function.heading;
  all += code(Definition{function.specifiers + "void " + function.name, function.parameters,
                         function.body});
  return all;
}

Code declaration(const Function& function) {
  return call(function.specifiers + "void " + function.name, function.parameters);
}

std::string text_without_name(Function function) {
  function.name.clear();
  function.heading = {};
  return str(definition(function));
}

}  // namespace flashlight::text
