// Does the left side of a rule stand here?
//
//   (rule "mul2" (v : Float) (mul v 2.0) (add v v))
//
// A parameter stands for any expression, twice for the same one; bound variables may have other
// names. A parameter stands for nothing that reads a variable bound within the left side. A
// function of the left side is the program's or the language's, so no variable has its name here.
#include <map>
#include <set>

#include "frontends/ks/interpreter.h"
#include "frontends/ks/parse.h"
#include "frontends/ks/parts.h"

namespace flashlight::ks {
namespace {

using Names = std::set<std::string>;

// The variables that an expression reads.
void add_variables(const Expression& expression, Names& names) {
  if (const auto* one = std::get_if<Variable>(&expression.form)) names.insert(one->name);
  if (const auto* one = std::get_if<Call>(&expression.form))
    names.insert(one->function.function);  // it may be a variable
  for_each_part(expression,
                [&](const Expression& part, const auto&) { add_variables(part, names); });
}

class Match {
 public:
  explicit Match(const Rule& rule) : rule_(rule) {}

  bool same(const ExpressionPtr& left, const ExpressionPtr& here) {
    if (const auto* variable = std::get_if<Variable>(&left->form))
      return stands_for(variable->name, here);
    if (left->form.index() != here->form.index()) return false;
    return std::visit([&](const auto& form) { return equal(form, *here); }, left->form);
  }

  Matched found() const {
    Matched all{.parts = {}, .functions = functions_};
    for (const Parameter& one : rule_.parameters) all.parts.push_back(found_.at(one.name));
    return all;
  }

 private:
  // The innermost variable of that name bound within the left side, and here; both are one where
  // the names mean the same.
  std::optional<size_t> bound_left(const std::string& name) const {
    for (size_t i = bound_.size(); i-- > 0;)
      if (bound_[i].first == name) return i;
    return std::nullopt;
  }
  std::optional<size_t> bound_here(const std::string& name) const {
    for (size_t i = bound_.size(); i-- > 0;)
      if (bound_[i].second == name) return i;
    return std::nullopt;
  }

  bool stands_for(const std::string& name, const ExpressionPtr& here) {
    if (const auto left = bound_left(name)) {
      const auto* variable = std::get_if<Variable>(&here->form);
      return variable != nullptr && bound_here(variable->name) == left;
    }
    bool parameter = false;
    for (const Parameter& one : rule_.parameters) parameter = parameter || one.name == name;
    if (!parameter) return false;
    Names read;
    add_variables(*here, read);
    for (const auto& one : bound_)
      if (read.count(one.second) != 0) return false;
    const auto [place, is_new] = found_.emplace(name, here);
    return is_new || print(*place->second) == print(*here);
  }

  bool all(const std::vector<ExpressionPtr>& left, const std::vector<ExpressionPtr>& here) {
    if (left.size() != here.size()) return false;
    for (size_t i = 0; i < left.size(); ++i)
      if (!same(left[i], here[i])) return false;
    return true;
  }
  bool within(const std::vector<std::string>& left, const std::vector<std::string>& here,
              const ExpressionPtr& left_body, const ExpressionPtr& body) {
    if (left.size() != here.size()) return false;
    for (size_t i = 0; i < left.size(); ++i) bound_.emplace_back(left[i], here[i]);
    const bool is = same(left_body, body);
    bound_.resize(bound_.size() - left.size());
    return is;
  }

  template <class Form>
  static const Form& as(const Expression& here) {
    return std::get<Form>(here.form);
  }
  bool equal(const Constant& left, const Expression& here) {
    return left.value == as<Constant>(here).value;
  }
  bool equal(const Variable&, const Expression&) { return false; }
  bool same_function(const Name& left, const Name& here) {
    const auto is_plain = [](const Name& name) {
      return name.derivations.empty() && !name.argument;
    };
    if (is_plain(left) && is_plain(here)) {
      const auto variable = bound_left(left.function);
      if (variable != bound_here(here.function)) return false;
      if (variable) return true;
      functions_.insert(here.function);
    }
    return left == here;
  }
  bool equal(const Call& left, const Expression& here) {
    const Call& one = as<Call>(here);
    return same_function(left.function, one.function) && all(left.arguments, one.arguments);
  }
  bool equal(const Let& left, const Expression& here) {
    const Let& one = as<Let>(here);
    return left.pattern.is_tuple == one.pattern.is_tuple && same(left.value, one.value) &&
           within(left.pattern.names, one.pattern.names, left.body, one.body);
  }
  bool equal(const If& left, const Expression& here) {
    const If& one = as<If>(here);
    return all({left.condition, left.then, left.otherwise},
               {one.condition, one.then, one.otherwise});
  }
  bool equal(const Assert& left, const Expression& here) {
    const Assert& one = as<Assert>(here);
    return all({left.condition, left.body}, {one.condition, one.body});
  }
  bool equal(const Lambda& left, const Expression& here) {
    const Lambda& one = as<Lambda>(here);
    return left.type == one.type && within({left.parameter}, {one.parameter}, left.body, one.body);
  }
  bool equal(const TupleOf& left, const Expression& here) {
    return all(left.items, as<TupleOf>(here).items);
  }
  bool equal(const Dummy& left, const Expression& here) {
    return left.type == as<Dummy>(here).type;
  }

  const Rule& rule_;
  std::vector<std::pair<std::string, std::string>> bound_;  // in the rule, and here
  std::map<std::string, ExpressionPtr> found_;
  Names functions_;
};

// The variables that an expression reads and does not bind itself.
void add_free(const Expression& expression, const Names& bound, Names& names) {
  if (const auto* one = std::get_if<Variable>(&expression.form))
    if (bound.count(one->name) == 0) names.insert(one->name);
  for_each_part(expression, [&](const Expression& part, const std::vector<std::string>& more) {
    Names all = bound;
    all.insert(more.begin(), more.end());
    add_free(part, all, names);
  });
}

}  // namespace

std::optional<std::string> fault_of(const Rule& rule) {
  if (std::get_if<Call>(&rule.left->form) == nullptr)
    return "expected a call as the left side of the rule \"" + rule.name + "\"";
  Names parameters, left, right;
  add_free(*rule.left, {}, left);
  add_free(*rule.right, {}, right);
  for (const Parameter& one : rule.parameters) {
    parameters.insert(one.name);
    if (left.count(one.name) == 0)
      return "expected a left side of the rule \"" + rule.name + "\" that reads its parameter '" +
             one.name + "'";
  }
  for (const Names& side : {left, right})
    for (const std::string& one : side)
      if (parameters.count(one) == 0)
        return "there is no variable '" + one + "' in the rule \"" + rule.name + "\"";
  return std::nullopt;
}

std::optional<Matched> match(const Rule& rule, const Expression& expression) {
  Match match(rule);
  if (!match.same(rule.left, std::make_shared<const Expression>(expression))) return std::nullopt;
  return match.found();
}

}  // namespace flashlight::ks
