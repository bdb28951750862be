// Functions that make and read tensors.
#include <cmath>

#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "frontends/ks/primitives.h"

namespace flashlight::ks {

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

Value index_value(const Index& index) {
  if (index.size() == 1) return {index[0]};
  Values items;
  for (const Expr& one : index) items.push_back({one});
  return tuple_of(std::move(items));
}

namespace {

using composit::DType;

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
  const Index own = interpreter.tape().variables(tensor.sizes);
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

// The same over several indices, the last one first.
Value sum_over(Interpreter& interpreter, Value value, const Index& index) {
  for (size_t axis = index.size(); axis-- > 0;) value = sum_over(interpreter, value, index[axis]);
  return value;
}

Value zero_of(const Value& x) {
  return map_numbers(x,
                     [](const Expr& one) { return composit::cast(Expr(int64_t{0}), one.dtype()); });
}
}  // namespace

Value build(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "a size and a function of an index");
  const Closure f = closure(call, both[1]);
  return tensor_of(sizes(call, both[0]),
                   [f](const Index& index) { return f.call(index_value(index)); });
}
Value sumbuild(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "a size and a function of an index");
  const Index index = call.interpreter.tape().variables(sizes(call, both[0]));
  return sum_over(call.interpreter, closure(call, both[1]).call(index_value(index)), index);
}
Value sum(PrimitiveCall& call) {
  const Value v = arguments(call, 1, "a tensor")[0];
  if (!v.is_tensor()) refuse(call, "a tensor");
  const Index index = call.interpreter.tape().variables(v.tensor().sizes);
  return sum_over(call.interpreter, v.tensor().at(index), index);
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

// True if tensors in two values of one type have the same sizes.
bool same_sizes(Tape& tape, const Value& x, const Value& y) {
  if (x.is_tuple() && y.is_tuple()) {
    bool same = x.items().size() == y.items().size();
    for (size_t i = 0; same && i < x.items().size(); ++i)
      same = same_sizes(tape, x.items()[i], y.items()[i]);
    return same;
  }
  if (!x.is_tensor() || !y.is_tensor()) return true;
  if (x.tensor().sizes != y.tensor().sizes) return false;
  const Index some = tape.variables(x.tensor().sizes);
  return same_sizes(tape, x.tensor().at(some), y.tensor().at(some));
}

// A fold whose result grows: each step has other sizes, and is made for itself.
Value unrolled(Tape& tape, const Closure& f, Value so_far, const TensorValue& v) {
  for (int64_t i = 0; i < v.sizes[0]; ++i)
    so_far = tape.in_memory(f.call(tuple_of({so_far, v.at({Expr(i)})})));
  return so_far;
}

// fold f init v: f of the result so far and an element, for each element in its order.
Value fold(PrimitiveCall& call) {
  const Values all = arguments(call, 3, "a function, a start and a Vec");
  const Closure f = closure(call, all[0]);
  if (!all[2].is_tensor() || all[2].tensor().sizes.size() != 1)
    refuse(call, "a function, a start and a Vec");
  Tape& tape = call.interpreter.tape();
  if (!tape.has_graph()) return unrolled(tape, f, all[1], all[2].tensor());
  const Value start = tape.computed(all[1]);
  // Indices of enclosing builds that anything here depends on: each has a fold of its own.
  const Expr i = tape.variable(all[2].tensor().sizes[0]);
  const Value element_value = all[2].tensor().at({i});
  const Value probe = f.call(tuple_of({start, element_value}));
  if (!same_sizes(tape, start, probe)) return unrolled(tape, f, all[1], all[2].tensor());
  std::vector<size_t> outer =
      tape.variables_of(tape.numbers_of(tuple_of({start, element_value, probe})));
  std::erase(outer, i.number());
  std::vector<size_t> with_index = {i.number()};
  with_index.insert(with_index.end(), outer.begin(), outer.end());
  std::vector<Leaf> carried, elements;
  tape.leaves(start, outer, carried);
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
        const Value acc = tape.from_leaves(start, with(carried, so_far, 0), next);
        const Value x = tape.from_leaves(element_value, with(elements, now, 1), next_element);
        std::vector<Leaf> results;
        tape.leaves(tape.computed(f.call(tuple_of({acc, x}))), outer, results);
        LazyTensors tensors;
        for (const Leaf& one : results) tensors.push_back(one.tensor);
        return composit::ScanStep{.carried = std::move(tensors), .outputs = {}};
      },
      init, sequences, {.reverse = false, .length = all[2].tensor().sizes[0]});
  size_t next = 0;
  return tape.from_leaves(start, with(carried, end.carried, 0), next);
}

}  // namespace flashlight::ks
