#include "frontends/ks/interpreter.h"

#include <algorithm>
#include <utility>

#include "composit/ir/error.h"
#include "frontends/ks/parse.h"
#include "frontends/ks/primitives.h"

namespace flashlight::ks {

Interpreter::Interpreter(const Program& program, Tape tape)
    : program_(program), tape_(std::move(tape)) {
  for (const Declaration& one : program_.declarations) {
    if (const auto* gdef = std::get_if<Gdef>(&one.form)) expect_function(*gdef, one.at);
    const auto* rule = std::get_if<Rule>(&one.form);
    if (rule == nullptr) continue;
    if (const auto fault = fault_of(*rule)) refuse(one.at, *fault);
  }
}

// Every derivative is there, so a gdef asks for nothing. One of no function is a slip.
void Interpreter::expect_function(const Gdef& gdef, Position at) const {
  const std::string& name = gdef.name.function;
  const auto declares = [&](const Declaration& one) {
    const auto* edef = std::get_if<Edef>(&one.form);
    return edef != nullptr && edef->name.function == name;
  };
  const auto& all = program_.declarations;
  if (!defines(name) && find_primitive(name) == nullptr &&
      std::none_of(all.begin(), all.end(), declares))
    refuse(at, "expected a function of the program or of the language, received '" + name + "'");
}

void Interpreter::refuse(Position at, const std::string& what) const {
  ks::refuse(program_.file, at, what);
}

std::optional<int64_t> known(const Value& value) {
  if (!value.is_number() || value.number().kind() != composit::ExprKind::literal)
    return std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(&value.number().value())) return *integer;
  if (const auto* boolean = std::get_if<bool>(&value.number().value())) return *boolean ? 1 : 0;
  return std::nullopt;
}

Type Interpreter::type_of(const Value& value) {
  if (value.is_number()) {
    const composit::DType dtype = value.number().dtype();
    return {dtype == composit::DType::bool_      ? Type::Kind::boolean
            : composit::is_floating_point(dtype) ? Type::Kind::floating
                                                 : Type::Kind::integer};
  }
  if (std::holds_alternative<std::string>(value.form)) return {Type::Kind::string};
  if (value.is_tuple()) {
    Type tuple{Type::Kind::tuple};
    for (const Value& item : value.items()) tuple.parts.push_back(type_of(item));
    return tuple;
  }
  if (!value.is_tensor()) return {Type::Kind::lambda};
  const Index index = tape_.variables(value.tensor().sizes);
  return {Type::Kind::tensor, static_cast<int>(index.size()), {type_of(value.tensor().at(index))}};
}

// ---- functions ----------------------------------------------------------------------------------

namespace {

// Counts the evaluations around that are not made once.
class Repeated {
 public:
  explicit Repeated(int& count) : count_(++count) {}
  ~Repeated() { --count_; }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

 private:
  int& count_;
};

// True if one of the arguments is a function: then a primitive takes it.
bool is_function(const Values& arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const Value& one) { return std::holds_alternative<Closure>(one.form); });
}

// True if a value of the type `actual` may be given for `declared`. What a function takes and gives
// shows when it is called.
bool fits(const Type& actual, const Type& declared) {
  if (actual.kind == Type::Kind::lambda && declared.kind == Type::Kind::lambda) return true;
  if (actual.kind != declared.kind || actual.rank != declared.rank ||
      actual.parts.size() != declared.parts.size())
    return false;
  for (size_t i = 0; i < actual.parts.size(); ++i)
    if (!fits(actual.parts[i], declared.parts[i])) return false;
  return true;
}

Type argument_type(const Def& def) {
  if (def.parameters.size() == 1) return def.parameters[0].type;
  Type tuple{Type::Kind::tuple};
  for (const Parameter& one : def.parameters) tuple.parts.push_back(one.type);
  return tuple;
}

// The argument of the function that a definition is of, or of a derivative of; nothing where the
// definition does not say it.
std::optional<Type> function_argument(const Def& def) {
  if (def.name.argument) return *def.name.argument;
  Type type = argument_type(def);
  for (const std::string& derivation : def.name.derivations) {
    if (derivation == "sufrevpass") return std::nullopt;
    if (derivation != "fwd" && derivation != "rev" && derivation != "sufrev") continue;
    if (type.kind != Type::Kind::tuple || type.parts.size() != 2) return std::nullopt;
    type = Type(type.parts[0]);
  }
  return type;
}

}  // namespace

bool Interpreter::defines(const std::string& function) const {
  return std::any_of(program_.declarations.begin(), program_.declarations.end(),
                     [&](const Declaration& one) {
                       const auto* def = std::get_if<Def>(&one.form);
                       return def != nullptr && def->name.function == function;
                     });
}

const Def* Interpreter::find(const Name& name, const std::optional<Type>& argument) const {
  for (const Declaration& one : program_.declarations) {
    const auto* def = std::get_if<Def>(&one.form);
    if (def == nullptr || def->name.function != name.function ||
        def->name.derivations != name.derivations)
      continue;
    const auto own = function_argument(*def);
    if (name.argument ? !own || *own == *name.argument
                      : !argument || fits(*argument, argument_type(*def)))
      return def;
  }
  return nullptr;
}

const Def& Interpreter::definition(const Name& name, const std::optional<Type>& argument,
                                   Position at) const {
  if (const Def* def = find(name, argument)) return *def;
  std::string others;
  for (const Declaration& one : program_.declarations)
    if (const auto* def = std::get_if<Def>(&one.form); def != nullptr &&
                                                       def->name.function == name.function &&
                                                       def->name.derivations == name.derivations)
      others += (others.empty() ? "" : " or ") + ks::print(argument_type(*def));
  const std::string received = argument ? ", received " + ks::print(*argument) : "";
  if (!others.empty()) refuse(at, "'" + name.function + "' expects " + others + received);
  for (const Declaration& one : program_.declarations)
    if (const auto* edef = std::get_if<Edef>(&one.form);
        edef != nullptr && edef->name.function == name.function)
      refuse(at, "'" + name.function + "' is declared by edef, and defined nowhere");
  refuse(at, "there is no function '" + ks::print(name) + "'");
}

Value Interpreter::call(const Name& name, const Value& argument, Position at) {
  if (const Def* def = find(name, type_of(argument))) return run(*def, argument, at);
  if (!name.derivations.empty()) return derived(name, argument, at);
  // A function of the language, of which a derivative is asked for.
  if (const Primitive primitive = find_primitive(name.function);
      primitive != nullptr && !defines(name.function)) {
    PrimitiveCall made{*this, {argument}, at, name.function};
    if (argument.is_tuple() && !takes_tuple(name.function)) made.arguments = argument.items();
    return primitive(made);
  }
  return run(definition(name, type_of(argument), at), argument, at);
}

Value Interpreter::run(const Def& def, const Value& argument, Position at) {
  constexpr size_t kDepth = 1000;
  if (running_.size() == kDepth)
    refuse(at, "'" + ks::print(def.name) + "' calls itself more than " + std::to_string(kDepth) +
                   " times within one another: values decide how often, or nothing ends it");
  ScopePtr scope;
  if (const Type type = type_of(argument), declared = argument_type(def); !fits(type, declared))
    refuse(at, "'" + ks::print(def.name) + "' expects " + ks::print(declared) + ", received " +
                   ks::print(type));
  const Value given = tape_.in_memory(argument);
  if (def.parameters.size() == 1) {
    scope = std::make_shared<const Scope>(Scope{def.parameters[0].name, given, nullptr});
  } else {
    for (size_t i = 0; i < def.parameters.size(); ++i)
      scope =
          std::make_shared<const Scope>(Scope{def.parameters[i].name, given.items().at(i), scope});
  }
  running_.push_back(&def);
  Value result = evaluate(*def.body, scope);
  running_.pop_back();
  if (const Type type = type_of(result); !(type == def.result))
    refuse(at, "'" + ks::print(def.name) + "' is declared to give " + ks::print(def.result) +
                   ", and gives " + ks::print(type));
  return result;
}

Value Interpreter::derived(const Name& name, const Value& argument, Position at) {
  Name inner = name;
  const std::string derivation = inner.derivations.front();
  inner.derivations.erase(inner.derivations.begin());
  const Repeated repeated(repeated_);
  if (derivation == "CL") return call(inner, argument, at);  // Knossos' other way to compile it
  if (derivation == "shape") return shape_of(call(inner, argument, at));
  if (derivation == "fwd") return forward_derivative(*this, inner, argument, at);
  if (derivation == "rev" || derivation == "sufrev")
    return reverse_derivative(*this, inner, argument, at);
  if (derivation == "suffwdpass")  // what the way back needs is the argument
    return tuple_of({call(inner, argument, at), argument});
  if (derivation == "sufrevpass" && (!argument.is_tuple() || argument.items().size() != 2))
    refuse(at, "'sufrevpass' expects a cotangent and what 'suffwdpass' kept, received " +
                   ks::print(type_of(argument)));
  if (derivation == "sufrevpass")
    return reverse_derivative(*this, inner,
                              tuple_of({argument.items().at(1), argument.items().at(0)}), at);
  refuse(at, "there is no derivative '" + derivation + "' here");
}

// ---- expressions --------------------------------------------------------------------------------

ScopePtr Interpreter::bind(const Pattern& pattern, const Value& value, const ScopePtr& scope,
                           Position at) {
  if (!pattern.is_tuple)
    return std::make_shared<const Scope>(Scope{pattern.names[0], value, scope});
  if (!value.is_tuple() || value.items().size() != pattern.names.size())
    refuse(at, "expected a tuple of " + std::to_string(pattern.names.size()) + ", received " +
                   ks::print(type_of(value)));
  ScopePtr inner = scope;
  for (size_t i = 0; i < pattern.names.size(); ++i)
    inner = std::make_shared<const Scope>(Scope{pattern.names[i], value.items()[i], inner});
  return inner;
}

Value Interpreter::select(const Expr& condition, const Value& x, const Value& y, Position at) {
  if (!(type_of(x) == type_of(y)))
    refuse(at, "both ways of an if are of one type, received " + ks::print(type_of(x)) + " and " +
                   ks::print(type_of(y)));
  if (x.is_number()) return {composit::select(condition, x.number(), y.number())};
  if (x.is_tuple()) {
    Values items;
    for (size_t i = 0; i < x.items().size(); ++i)
      items.push_back(select(condition, x.items()[i], y.items()[i], at));
    return tuple_of(std::move(items));
  }
  if (!x.is_tensor())
    refuse(at, "an if on values chooses between numbers, tuples and tensors, received " +
                   ks::print(type_of(x)) + " on both ways");
  return select_tensor(condition, x, y, at);
}

namespace {

// The element of a tensor at an index that may be above its sizes: then, 0.
Value element_or_zero(Interpreter& interpreter, const TensorValue& x, const Index& index,
                      const Value& like, Position at) {
  Expr below;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    const auto range = interpreter.tape().range(index[axis]);
    if (range && range->most < x.sizes[axis]) continue;
    if (x.sizes[axis] == 0) return zero_of(like);
    const Expr one = index[axis] < x.sizes[axis];
    below = below.defined() ? below && one : one;
  }
  const Value element = x.at(index);
  return below.defined() ? interpreter.select(below, element, zero_of(element), at) : element;
}

}  // namespace

Value Interpreter::select_tensor(const Expr& condition, const Value& x, const Value& y,
                                 Position at) {
  const TensorValue &p = x.tensor(), &q = y.tensor();
  if (same_sizes(p, q))
    return tensor_like(p, [this, condition, x, y, at](const Index& index) {
      return select(condition, x.tensor().at(index), y.tensor().at(index), at);
    });
  composit::Ints most;
  Index lengths;
  for (size_t axis = 0; axis < p.sizes.size(); ++axis) {
    const bool same = p.length(axis).same(q.length(axis));
    most.push_back(std::max(p.sizes[axis], q.sizes[axis]));
    lengths.push_back(!same            ? composit::select(condition, p.length(axis), q.length(axis))
                      : p.ragged(axis) ? p.length(axis)
                                       : Expr());
  }
  const auto element = [this, condition, x, y, at](const Index& index) {
    const auto is_empty = [](const TensorValue& one) {
      return std::find(one.sizes.begin(), one.sizes.end(), 0) != one.sizes.end();
    };
    const Value like = is_empty(x.tensor()) ? y.tensor().at(index) : x.tensor().at(index);
    return select(condition, element_or_zero(*this, x.tensor(), index, like, at),
                  element_or_zero(*this, y.tensor(), index, like, at), at);
  };
  return tensor_of(std::move(most), element, false, std::move(lengths));
}

// Evaluations within one another take the stack, of which a thread may have as little as 8 MiB.
void Interpreter::expect_stack(Position at) {
  constexpr std::ptrdiff_t kMost = 4 << 20;
  const char here = 0;
  if (stack_ == nullptr) stack_ = &here;
  if (std::abs(stack_ - &here) > kMost)
    refuse(at, "expected fewer calls and expressions within one another: they fill the stack");
}

Value Interpreter::evaluate(const Expression& outer, const ScopePtr& outer_scope) {
  expect_stack(outer.at);
  const Expression* innermost = &outer;
  ScopePtr scope = outer_scope;
  for (;; innermost = std::get<Let>(innermost->form).body.get()) {
    for (const Evaluated& one : evaluated_)
      if (one.expression == innermost && one.scope == scope) return one.value;
    const auto* one = std::get_if<Let>(&innermost->form);
    if (one == nullptr) break;
    scope = let(*one, scope, innermost->at);
  }
  const Expression& expression = *innermost;
  const Position at = expression.at;
  if (const auto* constant = std::get_if<Constant>(&expression.form)) {
    if (const auto* text = std::get_if<std::string>(&constant->value)) return {*text};
    if (const auto* integer = std::get_if<int64_t>(&constant->value))
      return {Expr::literal(*integer, composit::DType::int64)};
    if (const auto* boolean = std::get_if<bool>(&constant->value))
      return {Expr::literal(*boolean, composit::DType::bool_)};
    return {Expr::literal(std::get<double>(constant->value), tape_.floating())};
  }
  if (const auto* variable = std::get_if<Variable>(&expression.form)) {
    for (const Scope* one = scope.get(); one != nullptr; one = one->outer.get())
      if (one->name == variable->name) return one->value;
    refuse(at, "there is no variable '" + variable->name + "'");
  }
  if (const auto* one = std::get_if<If>(&expression.form)) return choose(*one, scope, at);
  if (const auto* one = std::get_if<Assert>(&expression.form)) return asserted(*one, scope, at);
  if (const auto* one = std::get_if<Lambda>(&expression.form)) return function(*one, scope, at);
  if (const auto* tuple = std::get_if<TupleOf>(&expression.form)) {
    Values items;
    for (const ExpressionPtr& item : tuple->items) items.push_back(evaluate(*item, scope));
    return tuple_of(std::move(items));
  }
  if (const auto* one = std::get_if<Call>(&expression.form)) {
    const size_t kept = evaluated_.size();
    std::optional<Value> value = rewritten(expression, scope);
    if (!value) value = apply(*one, scope, at);
    evaluated_.resize(kept);
    return *std::move(value);
  }
  refuse(at, "a value of $dummy has no graph");
}

// Under the rules that are not applied where it is made.
Value Interpreter::function(const Lambda& one, const ScopePtr& scope, Position at) {
  return {Closure{[this, &one, scope, at, rules = rewriting_](const Value& argument) {
    const Repeated repeated(repeated_);
    if (const Type type = type_of(argument); !fits(type, one.type))
      refuse(at, "this function takes " + ks::print(one.type) + ", received " + ks::print(type));
    const std::vector<const Rule*> others = std::exchange(rewriting_, rules);
    Value value =
        evaluate(*one.body, std::make_shared<const Scope>(Scope{one.parameter, argument, scope}));
    rewriting_ = others;
    return value;
  }}};
}

// Where a condition on values does not hold, no Float of the body is a number.
Value Interpreter::asserted(const Assert& one, const ScopePtr& scope, Position at) {
  const Value condition = evaluate(*one.condition, scope);
  if (!condition.is_number() || condition.number().dtype() != composit::DType::bool_)
    refuse(one.condition->at, "expected a Bool, received " + ks::print(type_of(condition)));
  const auto is = known(condition);
  if (is && *is == 0) refuse(at, "this assert does not hold");
  const Value body = evaluate(*one.body, scope);
  return is ? body : map_numbers(body, [holds = condition.number()](const Expr& number) {
    return composit::select(holds, number, no_number(number.dtype()));
  });
}

Value Interpreter::choose(const If& one, const ScopePtr& scope, Position at) {
  const Value condition = evaluate(*one.condition, scope);
  if (!condition.is_number() || condition.number().dtype() != composit::DType::bool_)
    refuse(one.condition->at, "expected a Bool, received " + ks::print(type_of(condition)));
  if (const auto is = known(condition))
    return evaluate(*is != 0 ? *one.then : *one.otherwise, scope);
  const Repeated repeated(repeated_);
  const Value x = evaluate(*one.then, scope), y = evaluate(*one.otherwise, scope);
  return select(condition.number(), x, y, at);
}

Value Interpreter::apply(const Call& one, const ScopePtr& scope, Position at) {
  Values arguments;
  for (const ExpressionPtr& part : one.arguments) arguments.push_back(evaluate(*part, scope));
  const Name& name = one.function;
  if (name.derivations.empty() && !name.argument)
    if (const Closure* closure = find_function(name.function, scope))
      return closure->call(arguments.size() == 1 ? arguments[0] : tuple_of(arguments));
  const Value argument = arguments.size() == 1 ? arguments[0] : tuple_of(arguments);
  const Primitive primitive = name.derivations.empty() ? find_primitive(name.function) : nullptr;
  // The program may define more functions of that name.
  if (primitive != nullptr && (!defines(name.function) || is_function(arguments) ||
                               find(name, type_of(argument)) == nullptr)) {
    PrimitiveCall made{*this, arguments, at, name.function};
    return primitive(made);
  }
  return call(name, argument, at);
}

// The right side of the first rule whose left side the call is, and whose parameters have the types
// of what stands for them there. These are computed once.
std::optional<Value> Interpreter::rewritten(const Expression& call, const ScopePtr& scope) {
  for (const Declaration& one : program_.declarations) {
    const auto* rule = std::get_if<Rule>(&one.form);
    if (rule == nullptr ||
        std::find(rewriting_.begin(), rewriting_.end(), rule) != rewriting_.end())
      continue;
    const auto matched = match(*rule, call);
    if (!matched ||
        std::any_of(matched->functions.begin(), matched->functions.end(),
                    [&](const std::string& name) { return find_function(name, scope); }))
      continue;
    const auto inner = parameters_of(*rule, matched->parts, scope);
    if (!inner) continue;
    rewriting_.push_back(rule);
    Value value = evaluate(*rule->right, *inner);
    rewriting_.pop_back();
    return value;
  }
  return std::nullopt;
}

// The parameters with what stands for them; nothing where one is of another type.
std::optional<ScopePtr> Interpreter::parameters_of(const Rule& rule,
                                                   const std::vector<ExpressionPtr>& parts,
                                                   const ScopePtr& scope) {
  ScopePtr inner;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Value value = evaluate(*parts[i], scope);
    evaluated_.push_back({parts[i].get(), scope, value});
    if (!fits(type_of(value), rule.parameters[i].type)) return std::nullopt;
    inner = std::make_shared<const Scope>(
        Scope{rule.parameters[i].name, tape_.in_memory(value), inner});
  }
  return inner;
}

// A variable that is a function.
const Closure* Interpreter::find_function(const std::string& name, const ScopePtr& scope) {
  for (const Scope* one = scope.get(); one != nullptr; one = one->outer.get())
    if (one->name == name)
      if (const auto* closure = std::get_if<Closure>(&one->value.form)) return closure;
  return nullptr;
}

void Interpreter::print(Values values, Position at) {
  if (repeated_ > 0)
    refuse(at,
           "'print' in a function that is called for each index, in a derivative or under an if "
           "on values: nobody knows how often");
  printed_.insert(printed_.end(), values.begin(), values.end());
}

// With what it binds. A value that is read more than once is computed once.
ScopePtr Interpreter::let(const Let& one, const ScopePtr& scope, Position at) {
  const Value value = evaluate(*one.value, scope);
  return bind(one.pattern, tape_.in_memory(value), scope, at);
}

}  // namespace flashlight::ks
