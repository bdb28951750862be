// Runs a program on values of a graph.
#pragma once

#include <map>
#include <memory>
#include <optional>
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
  Interpreter(const Program& program, composit::DType floating);

  Tape& tape() { return tape_; }
  // The value of a call. UserError where no function of that name takes such an argument.
  Value call(const Name& name, const Value& argument, Position at);
  const Def& definition(const Name& name, const std::optional<Type>& argument, Position at) const;

  Value evaluate(const Expression& expression, const ScopePtr& scope);
  // Of numbers, tuples and tensors of them; InternalError for functions.
  Type type_of(const Value& value);
  [[noreturn]] void refuse(Position at, const std::string& what) const;

  // Of both where it is not known which: numbers are selected, tensors element by element.
  Value select(const Expr& condition, const Value& x, const Value& y, Position at);

 private:
  bool defines(const std::string& function) const;
  const Def* find(const Name& name, const std::optional<Type>& argument) const;
  Value run(const Def& def, const Value& argument, Position at);
  Value derived(const Name& name, const Value& argument, Position at);
  Value let(const Let& one, const ScopePtr& scope, Position at);
  ScopePtr bind(const Pattern& pattern, const Value& value, const ScopePtr& scope, Position at);

  const Program& program_;
  Tape tape_;
  std::vector<const Def*> running_;
};

// Functions of the language itself: primitives.cpp. nullptr: there is none of that name.
struct PrimitiveCall {
  Interpreter& interpreter;
  const Values& arguments;
  Position at;
  const std::string& name;
};
using Primitive = Value (*)(PrimitiveCall& call);
Primitive find_primitive(const std::string& name);

// An integer that is known; nothing for others.
std::optional<int64_t> known(const Value& value);

// derivatives.cpp.
Value forward_derivative(Interpreter& interpreter, const Name& of, const Value& argument,
                         Position at);
Value reverse_derivative(Interpreter& interpreter, const Name& of, const Value& argument,
                         Position at);

}  // namespace flashlight::ks
