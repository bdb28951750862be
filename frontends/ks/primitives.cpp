#include "frontends/ks/primitives.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "frontends/ks/parse.h"

namespace flashlight::ks {

using composit::DType;
using composit::Function;

void refuse(const PrimitiveCall& call, const std::string& expected) {
  std::string received;
  for (const Value& one : call.arguments)
    received += (received.empty() ? "" : " ") + print(call.interpreter.type_of(one));
  call.interpreter.refuse(call.at, "'" + call.name + "' expects " + expected + ", received " +
                                       (received.empty() ? "nothing" : received));
}

// The arguments: written one after the other, or as a tuple.
Values arguments(const PrimitiveCall& call, size_t count, const char* expected) {
  if (call.arguments.size() == count) return call.arguments;
  if (call.arguments.size() == 1 && call.arguments[0].is_tuple() &&
      call.arguments[0].items().size() == count)
    return call.arguments[0].items();
  refuse(call, expected);
}

const Closure& closure(const PrimitiveCall& call, const Value& value) {
  const auto* function = std::get_if<Closure>(&value.form);
  if (function == nullptr) refuse(call, "a function: (lam (x : …) …)");
  return *function;
}

bool is_integer(const Value& value) {
  return value.is_number() && value.number().dtype() == DType::int64;
}
bool is_float(const Value& value) {
  return value.is_number() && composit::is_floating_point(value.number().dtype());
}
bool is_bool(const Value& value) {
  return value.is_number() && value.number().dtype() == DType::bool_;
}
bool has_only(const Type& type, const std::function<bool(const Type&)>& is) {
  if (type.kind != Type::Kind::tuple && type.kind != Type::Kind::tensor) return is(type);
  return std::all_of(type.parts.begin(), type.parts.end(),
                     [&](const Type& part) { return has_only(part, is); });
}
bool has_only(const Type& type, Type::Kind kind) {
  return has_only(type, [kind](const Type& one) { return one.kind == kind; });
}
bool has_numbers(const Type& type) {
  return !has_only(type, [](const Type&) { return false; });
}
Value integer(int64_t value) { return {Expr::literal(value, DType::int64)}; }

// f of the numbers of two values of one form.
Value zip(const PrimitiveCall& call, const Value& x, const Value& y,
          const std::function<Expr(const Expr&, const Expr&)>& f) {
  if (x.is_number() && y.is_number()) {
    if (x.number().dtype() != y.number().dtype()) refuse(call, "two values of one form");
    return {f(x.number(), y.number())};
  }
  if (x.is_tuple() && y.is_tuple() && x.items().size() == y.items().size()) {
    Values items;
    for (size_t i = 0; i < x.items().size(); ++i)
      items.push_back(zip(call, x.items()[i], y.items()[i], f));
    return tuple_of(std::move(items));
  }
  if (x.is_tensor() && y.is_tensor() && x.tensor().sizes.size() == y.tensor().sizes.size()) {
    expect_same_sizes(call, x.tensor(), y.tensor(), "two values of one form");
    const PrimitiveCall kept = call;
    return tensor_like(x.tensor(), [x, y, f, kept](const Index& index) {
      return zip(kept, x.tensor().at(index), y.tensor().at(index), f);
    });
  }
  refuse(call, "two values of one form");
}
Value map_numbers(const Value& x, const std::function<Expr(const Expr&)>& f) {
  if (x.is_number()) return {f(x.number())};
  if (x.is_tuple()) {
    Values items;
    for (const Value& item : x.items()) items.push_back(map_numbers(item, f));
    return tuple_of(std::move(items));
  }
  if (!x.is_tensor()) return x;
  return tensor_like(x.tensor(),
                     [x, f](const Index& index) { return map_numbers(x.tensor().at(index), f); });
}

Expr no_number(DType dtype) {
  const bool floats = composit::is_floating_point(dtype);
  return composit::cast(floats ? Expr(std::nan("")) : Expr(int64_t{0}), dtype);
}

Value zero_of(const Value& x) {
  return map_numbers(x,
                     [](const Expr& one) { return composit::cast(Expr(int64_t{0}), one.dtype()); });
}

namespace {

// A value plus another one of its form, or a tangent, which has (tuple) in the place of what is no
// Float.
Value moved(const PrimitiveCall& call, const Value& x, const Value& dx) {
  if (x.is_number() && !is_float(x) && (dx.is_number() || dx.is_tuple())) return x;
  if (x.is_tuple() && dx.is_tuple() && x.items().size() == dx.items().size()) {
    Values items;
    for (size_t i = 0; i < x.items().size(); ++i)
      items.push_back(moved(call, x.items()[i], dx.items()[i]));
    return tuple_of(std::move(items));
  }
  if (x.is_tensor() && dx.is_tensor() && x.tensor().sizes.size() == dx.tensor().sizes.size()) {
    expect_same_sizes(call, x.tensor(), dx.tensor(), "two values of one form");
    const PrimitiveCall kept = call;
    return tensor_like(x.tensor(), [x, dx, kept](const Index& index) {
      return moved(kept, x.tensor().at(index), dx.tensor().at(index));
    });
  }
  return zip(call, x, dx, std::plus<Expr>());
}
Value ts_add(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "a value, and one of its form or a tangent of it");
  return moved(call, both[0], both[1]);
}

Value scale(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "a Float and a value");
  if (!is_float(both[0])) refuse(call, "a Float and a value");
  const Expr by = both[0].number();
  return map_numbers(both[1], [by](const Expr& one) {
    return composit::is_floating_point(one.dtype()) ? by * one : one;
  });
}
// The sum of the products of all Floats of two values of one form.
Expr dot(const PrimitiveCall& call, const Value& x, const Value& y) {
  Tape& tape = call.interpreter.tape();
  if (x.is_number() && y.is_number())
    return is_float(x) ? x.number() * y.number() : Expr::literal(0.0, tape.floating());
  Expr total = Expr::literal(0.0, tape.floating());
  if (x.is_tuple() && y.is_tuple() && x.items().size() == y.items().size()) {
    for (size_t i = 0; i < x.items().size(); ++i)
      total = total + dot(call, x.items()[i], y.items()[i]);
    return total;
  }
  if (!x.is_tensor() || !y.is_tensor() || x.tensor().sizes.size() != y.tensor().sizes.size())
    refuse(call, "two values of one form");
  expect_same_sizes(call, x.tensor(), y.tensor(), "two values of one form");
  const Index index = tape.variables(x.tensor().sizes);
  const Value products = {dot(call, x.tensor().at(index), y.tensor().at(index))};
  total = zero_outside(x.tensor().inside(index), products).number();
  for (size_t axis = index.size(); axis-- > 0;) total = tape.sum(total, index[axis]);
  return total;
}
Value ts_dot(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "two values of one form");
  return {dot(call, both[0], both[1])};
}
Value same(PrimitiveCall& call) {
  return call.arguments.size() == 1 ? call.arguments[0] : tuple_of(call.arguments);
}
Value print_values(PrimitiveCall& call) {
  const auto is_value = [](const Type& one) { return one.kind != Type::Kind::lambda; };
  for (const Value& one : call.arguments)
    if (!has_only(call.interpreter.type_of(one), is_value)) refuse(call, "values, not functions");
  call.interpreter.print(call.arguments, call.at);
  return integer(std::ssize(call.arguments) - 1);
}
Value nothing(PrimitiveCall&) { return tuple_of({}); }

// True for the type of a value's tangent, or of the value itself.
bool is_tangent(const Type& tangent, const Type& of) {
  if (of.kind == Type::Kind::tuple || of.kind == Type::Kind::tensor) {
    if (tangent.kind != of.kind || tangent.rank != of.rank ||
        tangent.parts.size() != of.parts.size())
      return false;
    for (size_t i = 0; i < of.parts.size(); ++i)
      if (!is_tangent(tangent.parts[i], of.parts[i])) return false;
    return true;
  }
  const bool none = tangent.kind == Type::Kind::tuple && tangent.parts.empty();
  return tangent.kind == of.kind || (none && of.kind != Type::Kind::floating);
}

// $check f rev s ds dt: the relative difference of a derivative from a difference of values.
Value check(PrimitiveCall& call) {
  const Values all = arguments(call, 5, "f, its reverse derivative, s, ds, dt");
  const Closure f = closure(call, all[0]), reverse = closure(call, all[1]);
  const Value &s = all[2], &ds = all[3], &dt = all[4];
  if (!is_tangent(call.interpreter.type_of(ds), call.interpreter.type_of(s)))
    refuse(call, "a tangent ds of s, which has (tuple) in the place of what is no Float");
  const auto minus = [](const Expr& x, const Expr& y) { return x - y; };
  const Value there = call.interpreter.tape().in_memory(moved(call, s, ds));
  const Expr by_values = dot(call, zip(call, f.call(there), f.call(s), minus), dt);
  const Expr by_derivative = dot(call, reverse.call(tuple_of({s, dt})), ds);
  return {composit::abs(by_values - by_derivative) /
          (composit::abs(by_values) + composit::abs(by_derivative))};
}

// The number of an Integer, between 0 and 1, that looks like drawn: the hash of Knossos' prelude
// (https://mathoverflow.net/questions/104915).
double hashed(int64_t value) {
  auto v = static_cast<uint64_t>(value);
  v = v * 3935559000370003845 + 2691343689449507681;
  v ^= v >> 21, v ^= v << 37, v ^= v >> 4;
  v *= 4768777513237032717;
  v ^= v << 20, v ^= v >> 41, v ^= v << 5;
  return 5.42101086242752217e-20 * static_cast<double>(v);
}
// For an index, a constant holds the numbers of all values that it can have.
Value ranhash(PrimitiveCall& call) {
  const Value x = arguments(call, 1, "an Integer")[0];
  if (!is_integer(x)) refuse(call, "an Integer");
  Tape& tape = call.interpreter.tape();
  if (const auto value = known(x)) return {Expr::literal(hashed(*value), tape.floating())};
  constexpr int64_t kMost = 1 << 24;
  const auto range = tape.range(x.number());
  if (!range || range->most - range->least >= kMost)
    call.interpreter.refuse(call.at, "'$ranhashdoub' of an Integer that depends on values");
  std::vector<double> numbers;
  for (int64_t i = range->least; i <= range->most; ++i) numbers.push_back(hashed(i));
  const composit::Type type =
      composit::tensor_type(tape.floating(), {static_cast<int64_t>(numbers.size())});
  const LazyTensor table = composit::constant(composit::array_of(type, numbers));
  return {tape.load(table, {x.number() - range->least})};
}

// "get$2$3": item 2 of 3. Nothing for other names.
std::optional<std::pair<size_t, size_t>> item_of(const std::string& name) {
  constexpr std::string_view kGet = "get$";
  if (!name.starts_with(kGet)) return std::nullopt;
  const char* const end = name.data() + name.size();
  size_t number = 0, count = 0;
  const auto first = std::from_chars(name.data() + kGet.size(), end, number);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '$') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, count);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return std::pair(number, count);
}
Value item(PrimitiveCall& call) {
  const auto [number, count] = *item_of(call.name);
  const Value tuple = call.arguments.size() == 1 ? call.arguments[0] : tuple_of(call.arguments);
  if (!tuple.is_tuple() || tuple.items().size() != count || number < 1 || number > count)
    refuse(call, "a tuple of " + std::to_string(count));
  return tuple.items()[number - 1];
}

}  // namespace

bool takes_tuple(const std::string& primitive) { return item_of(primitive).has_value(); }

Primitive find_primitive(const std::string& name) {
  static const std::map<std::string, Primitive> table = {
      {"add", binary},
      {"sub", binary},
      {"mul", binary},
      {"div", binary},
      {"pow", binary},
      {"max", binary},
      {"min", binary},
      {"atan2", binary},
      {"ts_add", ts_add},
      {"eq", comparison},
      {"ne", comparison},
      {"lt", comparison},
      {"lte", comparison},
      {"gt", comparison},
      {"gte", comparison},
      {"not", logic},
      {"and", logic},
      {"or", logic},
      {"neg", negative},
      {"ts_neg", negative},
      {"abs", absolute},
      {"to_float", to_float},
      {"bool_to_float", to_float},
      {"pi", pi},
      {"imax", largest},
      {"exp", of_float<Function::exp>},
      {"log", of_float<Function::log>},
      {"sqrt", of_float<Function::sqrt>},
      {"sin", of_float<Function::sin>},
      {"cos", of_float<Function::cos>},
      {"tanh", of_float<Function::tanh>},
      {"cosh", of_float<Function::cosh>},
      {"erf", of_float<Function::erf>},
      {"lgamma", of_float<Function::lgamma>},
      {"build", build},
      {"sumbuild", sumbuild},
      {"sum", sum},
      {"size", size},
      {"index", index},
      {"map", map},
      {"map2", map},
      {"constVec", const_vec},
      {"Vec_init", vec_init},
      {"delta", delta},
      {"deltaVec", delta_vec},
      {"diag", diagonal},
      {"fold", fold},
      {"buildFromSparse", build_from_sparse},
      {"buildFromSparseTupled", build_from_sparse},
      {"unzip", unzip},
      {"shape", shape},
      {"print", print_values},
      {"ts_scale", scale},
      {"ts_dot", ts_dot},
      {"$copydown", same},
      {"$inline", same},
      {"$trace", same},
      {"dot", ts_dot},
      {"$ranhashdoub", ranhash},
      {"$check", check},
      {"elim", nothing}};
  const auto found = table.find(name);
  if (found != table.end()) return found->second;
  return item_of(name) ? item : nullptr;
}

}  // namespace flashlight::ks
