// Functions of numbers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "composit/ops/functions.h"
#include "frontends/ks/primitives.h"

namespace flashlight::ks {
namespace {

using composit::DType;
using composit::Function;

Expr divided(const Expr& x, const Expr& y) {
  return x.dtype() == DType::int64 ? composit::trunc_divide(x, y) : x / y;
}

// An integer of known ones is known.
std::optional<int64_t> computed(const std::string& name, int64_t x, int64_t y) {
  const auto wrapped = [](auto f, int64_t a, int64_t b) {
    return static_cast<int64_t>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  };
  if (name == "add") return wrapped(std::plus<>(), x, y);
  if (name == "sub") return wrapped(std::minus<>(), x, y);
  if (name == "mul") return wrapped(std::multiplies<>(), x, y);
  if (name == "div" && y != 0 && y != -1) return x / y;
  if (name == "max") return std::max(x, y);
  if (name == "min") return std::min(x, y);
  return std::nullopt;
}
// A comparison that is known by the least and the largest value of both integers.
std::optional<bool> compared(const std::string& name, Range x, Range y) {
  if (name == "eq" || name == "ne") {
    if (x.least > y.most || x.most < y.least) return name == "ne";
    if (x.least == x.most && y.least == y.most) return name == "eq";  // of one value, the same
    return std::nullopt;
  }
  if (name == "gt" || name == "gte") return compared(name == "gt" ? "lt" : "lte", y, x);
  const int64_t equal = name == "lte" ? 1 : 0;
  if (x.most < y.least + equal) return true;
  if (x.least >= y.most + equal) return false;
  return std::nullopt;
}

Expr arithmetic(const std::string& name, const Expr& x, const Expr& y) {
  if (name == "add") return x + y;
  if (name == "sub") return x - y;
  if (name == "mul") return x * y;
  if (name == "div") return divided(x, y);
  if (name == "pow") return composit::pow(x, composit::cast(y, x.dtype()));
  if (name == "atan2") return composit::atan2(x, y);
  return name == "max" ? composit::max(x, y) : composit::min(x, y);
}
Value matrix_times_vector(const PrimitiveCall& call, const Value& m, const Value& v) {
  expect_not_ragged(call, m);
  expect_not_ragged(call, v);
  if (m.tensor().sizes[1] != v.tensor().sizes[0])
    refuse(call, "a matrix and a Vec of as many elements as it has columns");
  Tape& tape = call.interpreter.tape();
  return tensor_of({m.tensor().sizes[0]}, [&tape, m, v](const Index& row) -> Value {
    const Expr j = tape.variable(v.tensor().sizes[0]);
    return {tape.sum(m.tensor().at({row[0], j}).number() * v.tensor().at({j}).number(), j)};
  });
}

// What is asked of the largest element of a Vec; `none`: of a ragged one that has no elements.
Expr of_largest(const PrimitiveCall& call, const Value& v,
                Expr (Tape::*ask)(const Expr& value, const Expr& variable), double none) {
  Tape& tape = call.interpreter.tape();
  const Expr i = tape.variable(v.tensor().sizes[0]);
  const Expr element = v.tensor().at({i}).number();
  const Expr inside = v.tensor().inside({i});
  if (!inside.defined()) return (tape.*ask)(element, i);
  const Expr least =
      element.dtype() == DType::int64
          ? Expr::literal(std::numeric_limits<int64_t>::min(), DType::int64)
          : composit::cast(Expr(-std::numeric_limits<double>::infinity()), element.dtype());
  const Expr asked = (tape.*ask)(composit::select(inside, element, least), i);
  const Expr nothing = asked.dtype() == DType::int64 ? Expr::literal(int64_t{0}, DType::int64)
                                                     : composit::cast(Expr(none), asked.dtype());
  return composit::select(v.tensor().length(0) > 0, asked, nothing);
}

// True if all numbers of two values of one form are equal.
Expr equal(const PrimitiveCall& call, const Value& x, const Value& y) {
  if (x.is_number() && y.is_number() && x.number().dtype() == y.number().dtype())
    return composit::eq(x.number(), y.number());
  Expr all = Expr::literal(true, DType::bool_);
  if (x.is_tuple() && y.is_tuple() && x.items().size() == y.items().size()) {
    for (size_t i = 0; i < x.items().size(); ++i)
      all = all && equal(call, x.items()[i], y.items()[i]);
    return all;
  }
  if (!x.is_tensor() || !y.is_tensor() || x.tensor().sizes.size() != y.tensor().sizes.size())
    refuse(call, "two values of one type");
  const TensorValue &p = x.tensor(), &q = y.tensor();
  if (p.sizes != q.sizes && !p.ragged() && !q.ragged()) return Expr::literal(false, DType::bool_);
  // As many, and none of those that both have differs.
  composit::Ints common;
  for (size_t axis = 0; axis < p.sizes.size(); ++axis) {
    if (!p.length(axis).same(q.length(axis)))
      all = all && composit::eq(p.length(axis), q.length(axis));
    common.push_back(std::min(p.sizes[axis], q.sizes[axis]));
  }
  Tape& tape = call.interpreter.tape();
  const Index index = tape.variables(common);
  const Value unequal = {composit::cast(!equal(call, p.at(index), q.at(index)), DType::int64)};
  Expr different = zero_outside(p.inside(index), unequal).number();
  for (size_t axis = index.size(); axis-- > 0;) different = tape.sum(different, index[axis]);
  return all && composit::eq(different, int64_t{0});
}

bool is_no_bool(const Type& type) { return type.kind != Type::Kind::boolean; }
bool is_number(const Type& type) {
  return type.kind == Type::Kind::integer || type.kind == Type::Kind::floating;
}

// True if arithmetic takes values of these types: numbers of one type, tuples or tensors of them, a
// tensor and a number, a matrix and a Vec. `power`: y may be an Integer where x has Floats.
bool fit(const Type& x, const Type& y, bool power) {
  if (is_number(y) && (is_number(x) || x.kind == Type::Kind::tensor))
    return has_only(x, y.kind) || (power && has_only(x, Type::Kind::floating));
  if (is_number(x) && y.kind == Type::Kind::tensor) return has_only(y, x.kind);
  if (x.kind == Type::Kind::tensor && y.kind == Type::Kind::tensor && x.rank != y.rank)
    return x.rank == 2 && y.rank == 1 && x.parts == y.parts && is_number(x.parts[0]);
  return x == y && has_only(x, is_number);
}

}  // namespace

Value binary(PrimitiveCall& call) {
  if (call.name == "max" && call.arguments.size() == 1 && call.arguments[0].is_tensor()) {
    const Value& v = call.arguments[0];
    if (v.tensor().sizes.size() != 1 || v.tensor().sizes[0] == 0)
      refuse(call, "a Vec that is not empty");
    if (!is_number(call.interpreter.type_of(v).parts[0])) refuse(call, "a Vec of numbers");
    return {of_largest(call, v, &Tape::maximum, std::nan(""))};
  }
  const Values both = arguments(call, 2, "two numbers of one type");
  const Value &x = both[0], &y = both[1];
  const auto a = known(x), b = known(y);
  if (a && b && is_integer(x) && is_integer(y))
    if (const auto value = computed(call.name, *a, *b)) return integer(*value);
  const bool power = call.name == "pow" && is_integer(y);
  if (!fit(call.interpreter.type_of(x), call.interpreter.type_of(y), power))
    refuse(call, x.is_number() && y.is_number()
                     ? "two numbers of one type"
                     : "numbers of one type, or tensors or tuples of them");
  const std::string name = call.name;
  const auto f = [name](const Expr& p, const Expr& q) { return arithmetic(name, p, q); };
  if (name == "mul" && x.is_tensor() && x.tensor().sizes.size() == 2 && y.is_tensor() &&
      y.tensor().sizes.size() == 1)
    return matrix_times_vector(call, x, y);
  if (x.is_tensor() && y.is_number())
    return map_numbers(x, [f, y](const Expr& p) { return f(p, y.number()); });
  if (x.is_number() && y.is_tensor())
    return map_numbers(y, [f, x](const Expr& q) { return f(x.number(), q); });
  if (x.is_number() && y.is_number()) return {f(x.number(), y.number())};
  return zip(call, x, y, f);
}

Value comparison(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "two numbers of one type");
  const Value &x = both[0], &y = both[1];
  const bool equality = call.name == "eq" || call.name == "ne";
  if (equality && !(x.is_number() && y.is_number())) {
    const Expr same = equal(call, x, y);
    return {call.name == "eq" ? same : !same};
  }
  if (!x.is_number() || !y.is_number() || x.number().dtype() != y.number().dtype())
    refuse(call, "two numbers of one type");
  if (is_integer(x)) {
    const Tape& tape = call.interpreter.tape();
    const auto a = tape.range(x.number()), b = tape.range(y.number());
    const auto is = a && b ? compared(call.name, *a, *b) : std::nullopt;
    if (is) return {Expr::literal(*is, DType::bool_)};
  }
  const Expr &p = x.number(), &q = y.number();
  return {call.name == "eq"    ? composit::eq(p, q)
          : call.name == "ne"  ? composit::ne(p, q)
          : call.name == "lt"  ? p < q
          : call.name == "lte" ? p <= q
          : call.name == "gt"  ? p > q
                               : p >= q};
}

Value logic(PrimitiveCall& call) {
  if (call.name == "not") {
    const Value x = arguments(call, 1, "a Bool")[0];
    if (!is_bool(x)) refuse(call, "a Bool");
    if (const auto is = known(x)) return {Expr::literal(*is == 0, DType::bool_)};
    return {!x.number()};
  }
  const Values both = arguments(call, 2, "two Bools");
  if (!is_bool(both[0]) || !is_bool(both[1])) refuse(call, "two Bools");
  const bool is_and = call.name == "and";
  for (size_t i = 0; i < 2; ++i)
    if (const auto is = known(both[i])) {
      const bool decides = (*is == 0) == is_and;
      return decides ? Value{Expr::literal(!is_and, DType::bool_)} : both[1 - i];
    }
  return {is_and ? both[0].number() && both[1].number() : both[0].number() || both[1].number()};
}

Value negative(PrimitiveCall& call) {
  const Value x = arguments(call, 1, "a number")[0];
  if (!has_only(call.interpreter.type_of(x), is_no_bool))
    refuse(call, "a number, or a tensor or tuple of numbers");
  if (const auto value = known(x); value && is_integer(x)) return integer(-*value);
  return map_numbers(x, [](const Expr& one) { return -one; });
}

Value absolute(PrimitiveCall& call) {
  const Value x = arguments(call, 1, "a number")[0];
  if (!x.is_number() || is_bool(x)) refuse(call, "a number");
  return {Expr::call(Function::abs, {x.number()})};
}
Value to_float(PrimitiveCall& call) {
  const Value x = arguments(call, 1, "an Integer or a Bool")[0];
  if (!x.is_number()) refuse(call, "an Integer or a Bool");
  return {composit::cast(x.number(), call.interpreter.tape().floating())};
}
// The index of the largest Float of a Vec, the first of equal ones.
Value largest(PrimitiveCall& call) {
  const Value v = arguments(call, 1, "a Vec of Floats that is not empty")[0];
  if (!v.is_tensor() || v.tensor().sizes.size() != 1 || v.tensor().sizes[0] == 0)
    refuse(call, "a Vec of Floats that is not empty");
  if (!is_float(v.tensor().at({Expr(int64_t{0})})))
    refuse(call, "a Vec of Floats that is not empty");
  return {of_largest(call, v, &Tape::largest, 0)};
}
Value pi(PrimitiveCall& call) {
  arguments(call, 0, "no argument");
  return {Expr::literal(std::numbers::pi, call.interpreter.tape().floating())};
}

}  // namespace flashlight::ks
