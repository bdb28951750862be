// Does the left side of a rule stand here?
//
//   (rule "mul2" (v : Float) (mul v 2.0) (add v v))
//
// A parameter stands for any expression, twice for the same one; bound variables may have other
// names. A parameter stands for nothing that reads a variable bound within the left side.
#include <map>
#include <set>

#include "frontends/ks/interpreter.h"
#include "frontends/ks/parse.h"

namespace flashlight::ks {
namespace {

using Names = std::set<std::string>;

// The variables that an expression reads.
void add_variables(const Expression& expression, Names& names) {
  const auto all = [&](const std::vector<ExpressionPtr>& parts) {
    for (const ExpressionPtr& one : parts) add_variables(*one, names);
  };
  if (const auto* one = std::get_if<Variable>(&expression.form)) names.insert(one->name);
  if (const auto* one = std::get_if<Call>(&expression.form)) {
    names.insert(one->function.function);  // it may be a variable
    all(one->arguments);
  }
  if (const auto* one = std::get_if<Let>(&expression.form)) all({one->value, one->body});
  if (const auto* one = std::get_if<If>(&expression.form))
    all({one->condition, one->then, one->otherwise});
  if (const auto* one = std::get_if<Assert>(&expression.form)) all({one->condition, one->body});
  if (const auto* one = std::get_if<Lambda>(&expression.form)) add_variables(*one->body, names);
  if (const auto* one = std::get_if<TupleOf>(&expression.form)) all(one->items);
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

  std::optional<std::vector<ExpressionPtr>> found() const {
    std::vector<ExpressionPtr> all;
    for (const Parameter& one : rule_.parameters) {
      const auto place = found_.find(one.name);
      if (place == found_.end()) return std::nullopt;  // what would it be on the right?
      all.push_back(place->second);
    }
    return all;
  }

 private:
  bool stands_for(const std::string& name, const ExpressionPtr& here) {
    for (size_t i = bound_.size(); i-- > 0;) {
      const auto* variable = std::get_if<Variable>(&here->form);
      if (bound_[i].first == name) return variable != nullptr && variable->name == bound_[i].second;
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
  bool equal(const Call& left, const Expression& here) {
    return left.function == as<Call>(here).function &&
           all(left.arguments, as<Call>(here).arguments);
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
};

}  // namespace

std::optional<std::vector<ExpressionPtr>> match(const Rule& rule, const Expression& expression) {
  if (std::get_if<Call>(&rule.left->form) == nullptr) return std::nullopt;
  Match match(rule);
  if (!match.same(rule.left, std::make_shared<const Expression>(expression))) return std::nullopt;
  return match.found();
}

}  // namespace flashlight::ks
