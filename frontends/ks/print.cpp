#include <spdlog/fmt/fmt.h>

#include "frontends/ks/parse.h"

namespace flashlight::ks {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text)
    all += c == '\n'   ? "\\n"
           : c == '\t' ? "\\t"
           : c == '"'  ? "\\\""
           : c == '\\' ? "\\\\"
                       : std::string(1, c);
  return all + "\"";
}

// With a point, as the language asks for.
std::string number(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string print(const Pattern& pattern) {
  const std::string names = fmt::format("{}", fmt::join(pattern.names, " "));
  return pattern.is_tuple ? "(" + names + ")" : names;
}

std::string print(const Parameter& parameter) {
  return parameter.name + " : " + ks::print(parameter.type);
}
std::string print(const std::vector<Parameter>& parameters) {
  if (parameters.size() == 1) return "(" + print(parameters[0]) + ")";
  std::string all;
  for (const Parameter& one : parameters) all += (all.empty() ? "(" : " (") + print(one) + ")";
  return "(" + all + ")";
}

// Text that does not fit in a line is broken into several, further to the right.
class Printer {
 public:
  std::string text(const Expression& expr, size_t indent) const {
    const std::string line = in_line(expr);
    if (indent + line.size() <= kWidth) return line;
    const std::string next = "\n" + std::string(indent + 2, ' ');
    return std::visit(Overloaded{[&](const Call& call) {
                                   std::string all = "(" + ks::print(call.function);
                                   for (const ExpressionPtr& one : call.arguments)
                                     all += next + text(*one, indent + 2);
                                   return all + ")";
                                 },
                                 [&](const Let& let) {
                                   const std::string head = "(let (" + print(let.pattern) + " ";
                                   return head + text(*let.value, indent + head.size()) + ")\n" +
                                          std::string(indent, ' ') + text(*let.body, indent) + ")";
                                 },
                                 [&](const If& one) {
                                   return "(if " + text(*one.condition, indent + 4) + next +
                                          text(*one.then, indent + 2) + next +
                                          text(*one.otherwise, indent + 2) + ")";
                                 },
                                 [&](const Assert& one) {
                                   return "(assert " + text(*one.condition, indent + 8) + next +
                                          text(*one.body, indent + 2) + ")";
                                 },
                                 [&](const Lambda& one) {
                                   return "(lam (" + one.parameter + " : " + ks::print(one.type) +
                                          ")" + next + text(*one.body, indent + 2) + ")";
                                 },
                                 [&](const TupleOf& tuple) {
                                   std::string all = "(tuple";
                                   for (const ExpressionPtr& one : tuple.items)
                                     all += next + text(*one, indent + 2);
                                   return all + ")";
                                 },
                                 [&](const auto&) { return line; }},
                      expr.form);
  }

  std::string in_line(const Expression& expr) const {
    const auto list = [&](const std::vector<ExpressionPtr>& parts) {
      std::string all;
      for (const ExpressionPtr& one : parts) all += " " + in_line(*one);
      return all;
    };
    return std::visit(
        Overloaded{[](const Constant& one) {
                     return std::visit(
                         Overloaded{
                             [](int64_t value) { return std::to_string(value); },
                             [](double value) { return number(value); },
                             [](bool value) { return std::string(value ? "true" : "false"); },
                             [](const std::string& value) { return quoted(value); }},
                         one.value);
                   },
                   [](const Variable& one) { return one.name; },
                   [&](const Call& call) {
                     return "(" + ks::print(call.function) + list(call.arguments) + ")";
                   },
                   [&](const Let& let) {
                     return fmt::format("(let ({} {}) {})", print(let.pattern), in_line(*let.value),
                                        in_line(*let.body));
                   },
                   [&](const If& one) {
                     return "(if" + list({one.condition, one.then, one.otherwise}) + ")";
                   },
                   [&](const Assert& one) {
                     return "(assert" + list({one.condition, one.body}) + ")";
                   },
                   [&](const Lambda& one) {
                     return fmt::format("(lam ({} : {}) {})", one.parameter, ks::print(one.type),
                                        in_line(*one.body));
                   },
                   [&](const TupleOf& tuple) { return "(tuple" + list(tuple.items) + ")"; },
                   [](const Dummy& one) { return "($dummy " + ks::print(one.type) + ")"; }},
        expr.form);
  }

 private:
  static constexpr size_t kWidth = 100;
};

std::string print(const Declaration& declaration) {
  const auto below = [](const ExpressionPtr& expr) { return "\n  " + Printer().text(*expr, 2); };
  return std::visit(
      Overloaded{
          [&](const Def& def) {
            return fmt::format("(def {} {} {}{})", print(def.name), print(def.result),
                               print(def.parameters), below(def.body));
          },
          [](const Edef& edef) {
            const Type& argument = edef.argument;
            std::string types;
            if (argument.kind == Type::Kind::tuple)
              for (const Type& one : argument.parts)
                types += (types.empty() ? "" : " ") + ks::print(one);
            const bool list = argument.kind == Type::Kind::tuple && argument.parts.size() != 1;
            return fmt::format("(edef {} {} {})", ks::print(edef.name), ks::print(edef.result),
                               list ? "(" + types + ")" : ks::print(argument));
          },
          [](const Gdef& gdef) {
            return fmt::format("(gdef {} {})", gdef.derivation, ks::print(gdef.name));
          },
          [&](const Rule& rule) {
            return fmt::format("(rule {} {}{}{})", quoted(rule.name), print(rule.parameters),
                               below(rule.left), below(rule.right));
          }},
      declaration.form);
}

}  // namespace

std::string print(const Type& type) {
  const auto list = [&] {
    std::string all;
    for (const Type& one : type.parts) all += " " + print(one);
    return all;
  };
  switch (type.kind) {
    case Type::Kind::integer:
      return "Integer";
    case Type::Kind::floating:
      return "Float";
    case Type::Kind::boolean:
      return "Bool";
    case Type::Kind::string:
      return "String";
    case Type::Kind::tuple:
      return "(Tuple" + list() + ")";
    case Type::Kind::tensor:
      return (type.rank == 1 ? "(Vec" : fmt::format("(Tensor {}", type.rank)) + list() + ")";
    case Type::Kind::lambda:
      return "(Lam" + list() + ")";
    case Type::Kind::linear_map:
      return "(LM" + list() + ")";
  }
  return "";
}

std::string print(const Name& name) {
  std::string text =
      name.argument ? fmt::format("[{} {}]", name.function, print(*name.argument)) : name.function;
  for (size_t i = name.derivations.size(); i-- > 0;)
    text = fmt::format("[{} {}]", name.derivations[i], text);
  return text;
}

std::string print(const Expression& expr) { return Printer().text(expr, 0); }

std::string print(const Program& program) {
  std::string text;
  for (const Declaration& one : program.declarations)
    text += (text.empty() ? "" : "\n") + print(one) + "\n";
  return text;
}

}  // namespace flashlight::ks
