// Names that mean nothing: also in functions that are never called, of which no graph is made.
#include <set>
#include <utility>

#include "frontends/ks/interpreter.h"
#include "frontends/ks/parse.h"

namespace flashlight::ks {
namespace {

using Names = std::set<std::string>;

class Finder {
 public:
  explicit Finder(const Program& program) {
    for (const Declaration& one : program.declarations) {
      if (const auto* def = std::get_if<Def>(&one.form)) functions_.insert(def->name.function);
      if (const auto* edef = std::get_if<Edef>(&one.form)) functions_.insert(edef->name.function);
    }
    for (const Declaration& one : program.declarations) {
      if (const auto* def = std::get_if<Def>(&one.form)) visit(*def->body, of(def->parameters));
      const auto* rule = std::get_if<Rule>(&one.form);
      if (rule == nullptr) continue;
      visit(*rule->left, of(rule->parameters));
      visit(*rule->right, of(rule->parameters));
    }
  }
  std::vector<std::pair<Position, std::string>> found() { return std::move(found_); }

 private:
  static Names of(const std::vector<Parameter>& parameters) {
    Names names;
    for (const Parameter& one : parameters) names.insert(one.name);
    return names;
  }

  void visit(const Expression& outer, Names bound) {
    const Expression* here = &outer;
    while (const auto* let = std::get_if<Let>(&here->form)) {  // of which there may be thousands
      visit(*let->value, bound);
      bound.insert(let->pattern.names.begin(), let->pattern.names.end());
      here = let->body.get();
    }
    const auto part = [&](const ExpressionPtr& one) { visit(*one, bound); };
    if (const auto* one = std::get_if<Variable>(&here->form))
      expect(bound.count(one->name) > 0, here->at, "variable", one->name);
    if (const auto* one = std::get_if<Call>(&here->form)) {
      const std::string& name = one->function.function;
      expect(bound.count(name) > 0 || functions_.count(name) > 0 || find_primitive(name) != nullptr,
             here->at, "function", name);
      for (const ExpressionPtr& argument : one->arguments) part(argument);
    }
    if (const auto* one = std::get_if<If>(&here->form))
      part(one->condition), part(one->then), part(one->otherwise);
    if (const auto* one = std::get_if<Assert>(&here->form)) part(one->condition), part(one->body);
    if (const auto* one = std::get_if<TupleOf>(&here->form))
      for (const ExpressionPtr& item : one->items) part(item);
    if (const auto* one = std::get_if<Lambda>(&here->form)) {
      bound.insert(one->parameter);
      visit(*one->body, std::move(bound));
    }
  }
  void expect(bool exists, Position at, const char* what, const std::string& name) {
    if (!exists) found_.emplace_back(at, std::string("there is no ") + what + " '" + name + "'");
  }

  Names functions_;
  std::vector<std::pair<Position, std::string>> found_;
};

}  // namespace

std::vector<std::pair<Position, std::string>> unknown_names(const Program& program) {
  return Finder(program).found();
}

}  // namespace flashlight::ks
