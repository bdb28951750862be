// Runs a program on values of a graph.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontends/ks/syntax.h"
#include "frontends/ks/values.h"

namespace flashlight::ks {

// Variables, the innermost first.
struct Scope;
using ScopePtr = std::shared_ptr<const Scope>;
struct Scope {
  std::string name;
  Value value;
  ScopePtr outer;
};

class Interpreter {
 public:
  Interpreter(const Program& program, Tape tape);

  Tape& tape() { return tape_; }
  // The value of a call. UserError where no function of that name takes such an argument.
  Value call(const Name& name, const Value& argument, Position at);
  const Def& definition(const Name& name, const std::optional<Type>& argument, Position at) const;

  Value evaluate(const Expression& expression, const ScopePtr& scope);
  // The type of a value; (Lam …) for a function.
  Type type_of(const Value& value);
  [[noreturn]] void refuse(Position at, const std::string& what) const;

  // x if the condition holds, else y: numbers are selected, tensors element by element. Tensors of
  // different sizes give a ragged one.
  Value select(const Expr& condition, const Value& x, const Value& y, Position at);

  // True for what may be evaluated for many indices, or under an if that does not take it.
  bool is_repeated() const { return repeated_ > 0; }
  // Prints values, after those before. UserError where it is not known how often that happens.
  void print(Values values, Position at);
  const Values& printed() const { return printed_; }

 private:
  void expect_function(const Gdef& gdef, Position at) const;
  bool defines(const std::string& function) const;
  const Def* find(const Name& name, const std::optional<Type>& argument) const;
  Value run(const Def& def, const Value& argument, Position at);
  Value select_tensor(const Expr& condition, const Value& x, const Value& y, Position at);
  Value derived(const Name& name, const Value& argument, Position at);
  ScopePtr let(const Let& one, const ScopePtr& scope, Position at);
  void expect_stack(Position at);
  ScopePtr bind(const Pattern& pattern, const Value& value, const ScopePtr& scope, Position at);
  Value asserted(const Assert& one, const ScopePtr& scope, Position at);
  Value choose(const If& one, const ScopePtr& scope, Position at);
  Value apply(const Call& one, const ScopePtr& scope, Position at);
  Value function(const Lambda& one, const ScopePtr& scope, Position at);
  static const Closure* find_function(const std::string& name, const ScopePtr& scope);
  std::optional<Value> rewritten(const Expression& call, const ScopePtr& scope);
  std::optional<ScopePtr> parameters_of(const Rule& rule, const std::vector<ExpressionPtr>& parts,
                                        const ScopePtr& scope);

  // What a rule that did not fit computed of the call's arguments: the call takes it.
  struct Evaluated {
    const Expression* expression;
    ScopePtr scope;
    Value value;
  };

  const Program& program_;
  Tape tape_;
  std::vector<Evaluated> evaluated_;
  std::vector<const Def*> running_;
  std::vector<const Rule*> rewriting_;  // a rule is not applied to its own right side
  int repeated_ =
      0;  // above 0: what is evaluated now may be evaluated for many indices, or for none
  Values printed_;
  const char* stack_ = nullptr;  // where the outermost evaluation is
};

// Functions of the language itself: primitives.cpp. nullptr: there is none of that name.
struct PrimitiveCall {
  Interpreter& interpreter;
  Values arguments;  // what is refused later, at an element, names them
  Position at;
  std::string name;
};
using Primitive = Value (*)(PrimitiveCall& call);
Primitive find_primitive(const std::string& name);
// True for a primitive whose one argument is a tuple: get$1$2.
bool takes_tuple(const std::string& primitive);

// sparse.cpp: what allocates a value like this: its sizes, and (tuple) for what has none.
Value shape_of(const Value& value);

// rules.cpp: the expressions that the parameters of a rule stand for, where its left side is this
// expression, and the functions that it calls, if no variable has their names.
struct Matched {
  std::vector<ExpressionPtr> parts;
  std::set<std::string> functions;
};
std::optional<Matched> match(const Rule& rule, const Expression& expression);
// What is wrong with a rule that could never be applied; nothing where none is.
std::optional<std::string> fault_of(const Rule& rule);

// primitives.cpp: a value of that form whose numbers are 0.
Value zero_of(const Value& value);

// An integer that is known; nothing for others.
std::optional<int64_t> known(const Value& value);

// derivatives.cpp.
Value forward_derivative(Interpreter& interpreter, const Name& of, const Value& argument,
                         Position at);
Value reverse_derivative(Interpreter& interpreter, const Name& of, const Value& argument,
                         Position at);

}  // namespace flashlight::ks
