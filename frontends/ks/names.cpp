// Names that mean nothing: also in functions that are never called, of which no graph is made.
#include <map>
#include <set>
#include <utility>

#include "frontends/ks/interpreter.h"
#include "frontends/ks/parse.h"
#include "frontends/ks/parts.h"

namespace flashlight::ks {
namespace {

class Finder {
 public:
  explicit Finder(const Program& program) {
    for (const Declaration& one : program.declarations) {
      if (const auto* def = std::get_if<Def>(&one.form)) functions_.insert(def->name.function);
      if (const auto* edef = std::get_if<Edef>(&one.form)) functions_.insert(edef->name.function);
    }
    for (const Declaration& one : program.declarations) {
      if (const auto* def = std::get_if<Def>(&one.form))
        visit_within(names_of(def->parameters), *def->body);
      const auto* rule = std::get_if<Rule>(&one.form);
      if (rule == nullptr) continue;
      visit_within(names_of(rule->parameters), *rule->left);
      visit_within(names_of(rule->parameters), *rule->right);
    }
  }
  std::vector<std::pair<Position, std::string>> found() { return std::move(found_); }

 private:
  using List = std::vector<std::string>;
  static List names_of(const std::vector<Parameter>& parameters) {
    List names;
    for (const Parameter& one : parameters) names.push_back(one.name);
    return names;
  }

  void visit_within(const List& names, const Expression& expression) {
    for (const std::string& one : names) ++bound_[one];
    visit(expression);
    for (const std::string& one : names) --bound_[one];
  }
  bool is_bound(const std::string& name) const {
    const auto found = bound_.find(name);
    return found != bound_.end() && found->second > 0;
  }

  void visit(const Expression& expression) {
    const Expression* here = &expression;
    List names;  // of lets, of which there may be thousands
    while (const auto* let = std::get_if<Let>(&here->form)) {
      visit(*let->value);
      for (const std::string& one : let->pattern.names) ++bound_[names.emplace_back(one)];
      here = let->body.get();
    }
    if (const auto* one = std::get_if<Variable>(&here->form))
      expect(is_bound(one->name), here->at, "variable", one->name);
    if (const auto* one = std::get_if<Call>(&here->form)) {
      const std::string& name = one->function.function;
      expect(is_bound(name) || functions_.count(name) > 0 || find_primitive(name) != nullptr,
             here->at, "function", name);
    }
    for_each_part(*here,
                  [&](const Expression& part, const List& more) { visit_within(more, part); });
    for (const std::string& one : names) --bound_[one];
  }
  void expect(bool exists, Position at, const char* what, const std::string& name) {
    if (!exists) found_.emplace_back(at, std::string("there is no ") + what + " '" + name + "'");
  }

  std::set<std::string> functions_;
  std::map<std::string, int> bound_;  // how many bindings of a name are around
  std::vector<std::pair<Position, std::string>> found_;
};

}  // namespace

std::vector<std::pair<Position, std::string>> unknown_names(const Program& program) {
  return Finder(program).found();
}

}  // namespace flashlight::ks
