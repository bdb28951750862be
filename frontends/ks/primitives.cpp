// Functions of Knossos' language itself.
#include <cmath>
#include <functional>
#include <numbers>

#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "frontends/ks/interpreter.h"
#include "frontends/ks/parse.h"

namespace flashlight::ks {
namespace {

using composit::DType;
using composit::Function;

[[noreturn]] void refuse(const PrimitiveCall& call, const std::string& expected) {
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
Value integer(int64_t value) { return {Expr::literal(value, DType::int64)}; }

// ---- sizes and indices --------------------------------------------------------------------------

// The sizes of a tensor: an Integer, or a tuple of them; all are known.
composit::Ints sizes(const PrimitiveCall& call, const Value& value) {
  const Values all = value.is_tuple() ? value.items() : Values{value};
  composit::Ints sizes;
  for (const Value& one : all) {
    if (!is_integer(one)) refuse(call, "a size: an Integer, or a tuple of them");
    const auto size = known(one);
    if (!size)
      call.interpreter.refuse(call.at, "a size that is not known: '" + call.name +
                                           "' gets one that depends on values or on an index");
    if (*size < 0) call.interpreter.refuse(call.at, "a size of " + std::to_string(*size));
    sizes.push_back(*size);
  }
  return sizes;
}

// Indices as the program sees them: one Integer, or a tuple of several.
Value index_value(const Index& index) {
  if (index.size() == 1) return {index[0]};
  Values items;
  for (const Expr& one : index) items.push_back({one});
  return tuple_of(std::move(items));
}

Value element(const PrimitiveCall& call, const Value& index, const Value& tensor) {
  const Values all = index.is_tuple() ? index.items() : Values{index};
  const TensorValue& from = tensor.tensor();
  if (all.size() != from.sizes.size())
    refuse(call, "an index of " + std::to_string(from.sizes.size()) + " Integers");
  Index at;
  Expr inside;
  for (size_t axis = 0; axis < all.size(); ++axis) {
    if (!is_integer(all[axis])) refuse(call, "an index of Integers");
    const Expr& one = all[axis].number();
    const auto range = call.interpreter.tape().range(one);
    const int64_t size = from.sizes[axis];
    if (range && (range->least >= size || range->most < 0))
      call.interpreter.refuse(call.at, "the index " + std::to_string(range->least) +
                                           " of a tensor of " + std::to_string(size));
    if (!range || range->least < 0 || range->most >= size) {
      const Expr here = one >= 0 && one < size;
      inside = inside.defined() ? inside && here : here;
    }
    at.push_back(one);
  }
  const Value value = from.at(at);
  if (!inside.defined()) return value;
  // A Float that is not there is not a number; an `if` around the index keeps it away.
  const std::function<Value(const Value&)> nowhere = [&](const Value& one) -> Value {
    if (is_float(one)) return {composit::cast(Expr(std::nan("")), one.number().dtype())};
    if (one.is_number()) return {composit::cast(Expr(int64_t{0}), one.number().dtype())};
    if (one.is_tuple()) {
      Values items;
      for (const Value& item : one.items()) items.push_back(nowhere(item));
      return tuple_of(std::move(items));
    }
    return tensor_of(one.tensor().sizes, [one, nowhere](const Index& inner) {
      return nowhere(one.tensor().at(inner));
    });
  };
  return call.interpreter.select(inside, value, nowhere(value), call.at);
}

// ---- values of any form -------------------------------------------------------------------------

// f of the numbers of two values of one form.
Value zip(const PrimitiveCall& call, const Value& x, const Value& y,
          const std::function<Expr(const Expr&, const Expr&)>& f) {
  if (x.is_number() && y.is_number()) return {f(x.number(), y.number())};
  if (x.is_tuple() && y.is_tuple() && x.items().size() == y.items().size()) {
    Values items;
    for (size_t i = 0; i < x.items().size(); ++i)
      items.push_back(zip(call, x.items()[i], y.items()[i], f));
    return tuple_of(std::move(items));
  }
  if (x.is_tensor() && y.is_tensor() && x.tensor().sizes == y.tensor().sizes) {
    const PrimitiveCall kept = call;
    return tensor_of(x.tensor().sizes, [x, y, f, kept](const Index& index) {
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
  return tensor_of(x.tensor().sizes,
                   [x, f](const Index& index) { return map_numbers(x.tensor().at(index), f); });
}

// Sums each Float of a value over an index; other numbers are none of a sum.
Value sum_over(Interpreter& interpreter, const Value& value, const Expr& variable) {
  if (value.is_number()) return {interpreter.tape().sum(value.number(), variable)};
  if (value.is_tuple()) {
    Values items;
    for (const Value& item : value.items()) items.push_back(sum_over(interpreter, item, variable));
    return tuple_of(std::move(items));
  }
  // All elements at once: a sum for each would be a node for each.
  const TensorValue& tensor = value.tensor();
  Index own;
  for (const int64_t size : tensor.sizes) own.push_back(interpreter.tape().variable(size));
  const Value sums = sum_over(interpreter, tensor.at(own), variable);
  return tensor_of(
      tensor.sizes,
      [own, sums](const Index& index) {
        return map_numbers(sums, [&](const Expr& sum) {
          return composit::replace(sum, [&](const Expr& part) -> Expr {
            for (size_t i = 0; i < own.size(); ++i)
              if (part.same(own[i])) return index[i];
            return {};
          });
        });
      },
      true);
}

// ---- arithmetic ---------------------------------------------------------------------------------

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
std::optional<bool> compared(const std::string& name, int64_t x, int64_t y) {
  if (name == "eq") return x == y;
  if (name == "ne") return x != y;
  if (name == "lt") return x < y;
  if (name == "lte") return x <= y;
  if (name == "gt") return x > y;
  if (name == "gte") return x >= y;
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
Value binary(PrimitiveCall& call) {
  if (call.name == "max" && call.arguments.size() == 1 && call.arguments[0].is_tensor()) {
    const Value& v = call.arguments[0];
    if (v.tensor().sizes.size() != 1 || v.tensor().sizes[0] == 0)
      refuse(call, "a Vec that is not empty");
    const Expr i = call.interpreter.tape().variable(v.tensor().sizes[0]);
    return {call.interpreter.tape().maximum(v.tensor().at({i}).number(), i)};
  }
  const Values both = arguments(call, 2, "two numbers of one type");
  const Value &x = both[0], &y = both[1];
  const auto a = known(x), b = known(y);
  if (a && b && is_integer(x) && is_integer(y))
    if (const auto value = computed(call.name, *a, *b)) return integer(*value);
  const bool power = call.name == "pow" && is_float(x) && is_integer(y);
  if (x.is_number() && (is_bool(x) || (!(x.number().dtype() == y.number().dtype()) && !power)))
    refuse(call, "two numbers of one type");
  const std::string name = call.name;
  return zip(call, x, y, [name](const Expr& p, const Expr& q) { return arithmetic(name, p, q); });
}

Value ts_add(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "two values of one form");
  return zip(call, both[0], both[1], [](const Expr& x, const Expr& y) {
    return composit::is_floating_point(x.dtype()) ? x + y : x;
  });
}

Value comparison(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "two numbers of one type");
  const Value &x = both[0], &y = both[1];
  if (!x.is_number() || !y.is_number() || x.number().dtype() != y.number().dtype())
    refuse(call, "two numbers of one type");
  const auto a = known(x), b = known(y);
  if (a && b)
    if (const auto is = compared(call.name, *a, *b)) return {Expr::literal(*is, DType::bool_)};
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
  if (const auto value = known(x); value && is_integer(x)) return integer(-*value);
  return map_numbers(x, [](const Expr& one) { return -one; });
}

template <Function kFunction>
Value of_float(PrimitiveCall& call) {
  const Value x = arguments(call, 1, "a Float")[0];
  if (!is_float(x) && !x.is_tensor()) refuse(call, "a Float");
  return map_numbers(x, [](const Expr& one) { return Expr::call(kFunction, {one}); });
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
Value pi(PrimitiveCall& call) {
  return {Expr::literal(std::numbers::pi, call.interpreter.tape().floating())};
}

// ---- tensors ------------------------------------------------------------------------------------

Value build(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "a size and a function of an index");
  const Closure f = closure(call, both[1]);
  return tensor_of(sizes(call, both[0]),
                   [f](const Index& index) { return f.call(index_value(index)); });
}
Value sumbuild(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "a size and a function of an index");
  const composit::Ints extents = sizes(call, both[0]);
  Index index;
  for (const int64_t extent : extents) index.push_back(call.interpreter.tape().variable(extent));
  Value sums = closure(call, both[1]).call(index_value(index));
  for (size_t axis = index.size(); axis-- > 0;)
    sums = sum_over(call.interpreter, sums, index[axis]);
  return sums;
}
Value sum(PrimitiveCall& call) {
  const Value v = arguments(call, 1, "a tensor")[0];
  if (!v.is_tensor()) refuse(call, "a tensor");
  Index index;
  for (const int64_t size : v.tensor().sizes)
    index.push_back(call.interpreter.tape().variable(size));
  Value sums = v.tensor().at(index);
  for (size_t axis = index.size(); axis-- > 0;)
    sums = sum_over(call.interpreter, sums, index[axis]);
  return sums;
}
Value size(PrimitiveCall& call) {
  const Value v = arguments(call, 1, "a tensor")[0];
  if (!v.is_tensor()) refuse(call, "a tensor");
  Values items;
  for (const int64_t one : v.tensor().sizes) items.push_back(integer(one));
  return items.size() == 1 ? items[0] : tuple_of(std::move(items));
}
Value index(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "an index and a tensor");
  if (!both[1].is_tensor()) refuse(call, "an index and a tensor");
  return element(call, both[0], both[1]);
}
Value map(PrimitiveCall& call) {
  const bool two = call.name == "map2";
  const Values all = arguments(call, two ? 3 : 2, "a function and tensors");
  const Closure f = closure(call, all[0]);
  const Value x = all[1], y = all.back();
  if (!x.is_tensor() || !y.is_tensor() || x.tensor().sizes != y.tensor().sizes)
    refuse(call, "a function and tensors of one size");
  return tensor_of(x.tensor().sizes, [f, x, y, two](const Index& at) {
    return f.call(two ? tuple_of({x.tensor().at(at), y.tensor().at(at)}) : x.tensor().at(at));
  });
}
Value const_vec(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "a size and a value");
  const Value x = both[1];
  return tensor_of(sizes(call, both[0]), [x](const Index&) { return x; });
}
Value vec_init(PrimitiveCall& call) {
  const Values items = call.arguments;
  if (items.empty()) refuse(call, "at least one element");
  Interpreter& interpreter = call.interpreter;
  const Position at = call.at;
  return tensor_of({static_cast<int64_t>(items.size())}, [&interpreter, items, at](const Index& i) {
    if (const auto one = known({i[0]}); one && *one >= 0 && *one < std::ssize(items))
      return items[static_cast<size_t>(*one)];
    Value chosen = items.back();
    for (size_t k = items.size() - 1; k-- > 0;)
      chosen =
          interpreter.select(composit::eq(i[0], static_cast<int64_t>(k)), items[k], chosen, at);
    return chosen;
  });
}
Value zero_of(const Value& x) {
  return map_numbers(x,
                     [](const Expr& one) { return composit::cast(Expr(int64_t{0}), one.dtype()); });
}
// x where two integers are equal, and zero elsewhere.
Value delta(PrimitiveCall& call) {
  const Values all = arguments(call, 3, "two Integers and a value");
  return call.interpreter.select(composit::eq(all[0].number(), all[1].number()), all[2],
                                 zero_of(all[2]), call.at);
}
Value delta_vec(PrimitiveCall& call) {
  const Values all = arguments(call, 3, "a size, an index and a value");
  const Values places = all[1].is_tuple() ? all[1].items() : Values{all[1]};
  const Value x = all[2];
  Interpreter& interpreter = call.interpreter;
  const Position at = call.at;
  return tensor_of(sizes(call, all[0]), [&interpreter, places, x, at](const Index& index) {
    Expr here;
    for (size_t i = 0; i < index.size(); ++i) {
      const Expr same = composit::eq(index[i], places[i].number());
      here = here.defined() ? here && same : same;
    }
    return interpreter.select(here, x, zero_of(x), at);
  });
}
Value diagonal(PrimitiveCall& call) {
  const Values all = arguments(call, 3, "two sizes and a Vec");
  const Value v = all[2];
  if (!v.is_tensor()) refuse(call, "two sizes and a Vec");
  const composit::Ints rows = sizes(call, all[0]), columns = sizes(call, all[1]);
  Interpreter& interpreter = call.interpreter;
  const Position at = call.at;
  return tensor_of({rows[0], columns[0]}, [&interpreter, v, at](const Index& index) {
    const Value x = v.tensor().at({index[0]});
    return interpreter.select(composit::eq(index[0], index[1]), x, zero_of(x), at);
  });
}

// fold f init v: f of the result so far and an element, for each element in its order.
Value fold(PrimitiveCall& call) {
  const Values all = arguments(call, 3, "a function, a start and a Vec");
  const Closure f = closure(call, all[0]);
  if (!all[2].is_tensor() || all[2].tensor().sizes.size() != 1)
    refuse(call, "a function, a start and a Vec");
  Tape& tape = call.interpreter.tape();
  // Indices of enclosing builds that anything here depends on: each has a fold of its own.
  const Expr i = tape.variable(all[2].tensor().sizes[0]);
  const Value element_value = all[2].tensor().at({i});
  const Value probe = f.call(tuple_of({all[1], element_value}));
  std::vector<size_t> outer =
      tape.variables_of(tape.numbers_of(tuple_of({all[1], element_value, probe})));
  std::erase(outer, i.number());
  std::vector<size_t> with_index = {i.number()};
  with_index.insert(with_index.end(), outer.begin(), outer.end());
  std::vector<Leaf> carried, elements;
  tape.leaves(all[1], outer, carried);
  tape.leaves(element_value, with_index, elements);
  LazyTensors init, sequences;
  for (const Leaf& one : carried) init.push_back(one.tensor);
  for (const Leaf& one : elements) sequences.push_back(one.tensor);
  const auto with = [](std::vector<Leaf> leaves, const LazyTensors& tensors, size_t drop) {
    for (size_t k = 0; k < leaves.size(); ++k) {
      leaves[k].tensor = tensors[k];
      leaves[k].variables.erase(leaves[k].variables.begin(),
                                leaves[k].variables.begin() + static_cast<std::ptrdiff_t>(drop));
    }
    return std::make_shared<const std::vector<Leaf>>(std::move(leaves));
  };
  const composit::ScanStep end = composit::scan(
      [&](const LazyTensors& so_far, const LazyTensors& now) {
        size_t next = 0, next_element = 0;
        const Value acc = tape.from_leaves(all[1], with(carried, so_far, 0), next);
        const Value x = tape.from_leaves(element_value, with(elements, now, 1), next_element);
        std::vector<Leaf> results;
        tape.leaves(f.call(tuple_of({acc, x})), outer, results);
        LazyTensors tensors;
        for (const Leaf& one : results) tensors.push_back(one.tensor);
        return composit::ScanStep{.carried = std::move(tensors), .outputs = {}};
      },
      init, sequences, {.reverse = false, .length = all[2].tensor().sizes[0]});
  size_t next = 0;
  return tape.from_leaves(all[1], with(carried, end.carried, 0), next);
}

// ---- others -------------------------------------------------------------------------------------

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
  if (!x.is_tensor() || !y.is_tensor() || x.tensor().sizes != y.tensor().sizes)
    refuse(call, "two values of one form");
  Index index;
  for (const int64_t extent : x.tensor().sizes) index.push_back(tape.variable(extent));
  total = dot(call, x.tensor().at(index), y.tensor().at(index));
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
Value nothing(PrimitiveCall&) { return tuple_of({}); }

// $check f rev s ds dt: the relative difference of a derivative from a difference of values.
Value check(PrimitiveCall& call) {
  const Values all = arguments(call, 5, "f, its reverse derivative, s, ds, dt");
  const Closure f = closure(call, all[0]), reverse = closure(call, all[1]);
  const Value &s = all[2], &ds = all[3], &dt = all[4];
  const auto plus = [](const Expr& x, const Expr& y) {
    return composit::is_floating_point(x.dtype()) ? x + y : x;
  };
  const auto minus = [](const Expr& x, const Expr& y) { return x - y; };
  const Value moved = call.interpreter.tape().in_memory(zip(call, s, ds, plus));
  const Expr by_values = dot(call, zip(call, f.call(moved), f.call(s), minus), dt);
  const Expr by_derivative = dot(call, reverse.call(tuple_of({s, dt})), ds);
  return {composit::abs(by_values - by_derivative) /
          (composit::abs(by_values) + composit::abs(by_derivative))};
}

// "get$2$3": item 2 of 3.
Value item(PrimitiveCall& call) {
  const size_t first = call.name.find('$'), second = call.name.find('$', first + 1);
  const size_t number = std::stoul(call.name.substr(first + 1, second - first - 1)),
               count = std::stoul(call.name.substr(second + 1));
  const Value tuple = call.arguments.size() == 1 ? call.arguments[0] : tuple_of(call.arguments);
  if (!tuple.is_tuple() || tuple.items().size() != count || number < 1 || number > count)
    refuse(call, "a tuple of " + std::to_string(count));
  return tuple.items()[number - 1];
}

}  // namespace

Primitive find_primitive(const std::string& name) {
  static const std::map<std::string, Primitive> table = {{"add", binary},
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
                                                         {"ts_scale", scale},
                                                         {"ts_dot", ts_dot},
                                                         {"$copydown", same},
                                                         {"$check", check},
                                                         {"elim", nothing}};
  const auto found = table.find(name);
  if (found != table.end()) return found->second;
  const bool is_get =
      name.starts_with("get$") && name.find_first_not_of("0123456789$", 4) == std::string::npos;
  return is_get ? item : nullptr;
}

}  // namespace flashlight::ks
