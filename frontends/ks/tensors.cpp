// Functions that make and read tensors.
#include <algorithm>

#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "frontends/ks/parse.h"
#include "frontends/ks/primitives.h"

namespace flashlight::ks {

Sizes sizes(const PrimitiveCall& call, const Value& value) {
  const Values all = value.is_tuple() ? value.items() : Values{value};
  Interpreter& interpreter = call.interpreter;
  Sizes sizes;
  for (const Value& one : all) {
    if (!is_integer(one)) refuse(call, "a size: an Integer, or a tuple of them");
    const auto size = known(one);
    const auto range = interpreter.tape().range(one.number());
    if (!size && !range)
      interpreter.refuse(call.at, "a size that is not known: '" + call.name +
                                      "' gets one that depends on values, and nothing says how "
                                      "large it is at most, as (max 0 (min 10 n)) does");
    if (!size && range->least < 0)
      interpreter.refuse(call.at, "a size that may be negative: '" + call.name +
                                      "' gets one that is " + std::to_string(range->least) +
                                      " at least; (max 0 n) is not");
    if (size && *size < 0)
      interpreter.refuse(
          call.at, "expected a size of 0 or more, received a size of " + std::to_string(*size));
    sizes.most.push_back(size ? *size : range->most);
    sizes.lengths.push_back(size || range->least == range->most ? Expr() : one.number());
  }
  int64_t elements = 1;
  for (const int64_t most : sizes.most)
    if (__builtin_mul_overflow(elements, most, &elements))
      interpreter.refuse(call.at, "expected sizes of up to 2^63 elements");
  const auto is_exact = [](const Expr& length) { return !length.defined(); };
  if (std::all_of(sizes.lengths.begin(), sizes.lengths.end(), is_exact)) sizes.lengths.clear();
  return sizes;
}

void expect_same_sizes(const PrimitiveCall& call, const TensorValue& x, const TensorValue& y,
                       const char* expected) {
  if (same_sizes(x, y)) return;
  if (!x.ragged() && !y.ragged()) refuse(call, expected);
  call.interpreter.refuse(call.at, "'" + call.name +
                                       "' of tensors whose sizes are not known to be the same: "
                                       "build one over the size of the other");
}
void expect_not_ragged(const PrimitiveCall& call, const Value& value) {
  if (call.interpreter.tape().is_ragged(value))
    call.interpreter.refuse(call.at, "'" + call.name +
                                         "' of a ragged tensor, whose elements are of sizes that "
                                         "depend on values or on an index");
}
Value zero_outside(const Expr& inside, const Value& value) {
  if (!inside.defined()) return value;
  return map_numbers(value, [inside](const Expr& one) {
    return composit::select(inside, one, composit::cast(Expr(int64_t{0}), one.dtype()));
  });
}

Value index_value(const Index& index) {
  if (index.size() == 1) return {index[0]};
  Values items;
  for (const Expr& one : index) items.push_back({one});
  return tuple_of(std::move(items));
}

namespace {

using composit::DType;

// A Float that is not there is not a number; an `if` around the index keeps it away.
Value nowhere(const Value& value) {
  return map_numbers(value, [](const Expr& one) { return no_number(one.dtype()); });
}

Index all_numbers(const Values& values) {
  Index index;
  for (const Value& one : values) index.push_back(one.number());
  return index;
}

Value element(const PrimitiveCall& call, const Value& index, const Value& tensor) {
  const Values all = index.is_tuple() ? index.items() : Values{index};
  const TensorValue& from = tensor.tensor();
  if (all.size() != from.sizes.size())
    refuse(call, "an index of " + std::to_string(from.sizes.size()) + " Integers");
  if (!std::all_of(all.begin(), all.end(), is_integer)) refuse(call, "an index of Integers");
  Index at;
  Expr inside;
  for (size_t axis = 0; axis < all.size(); ++axis) {
    const Expr& one = all[axis].number();
    const auto range = call.interpreter.tape().range(one);
    const int64_t size = from.sizes[axis];
    // Of a `build` without elements: nothing is read.
    if (range && range->least > range->most) return zero_of(from.at(all_numbers(all)));
    const bool is_outside = range && (range->least >= size || range->most < 0);
    if (is_outside && !call.interpreter.is_repeated())
      call.interpreter.refuse(call.at, "the index " + std::to_string(range->least) +
                                           " of a tensor of " + std::to_string(size));
    // An if on values keeps it away.
    if (is_outside && size == 0) return nowhere(from.at(all_numbers(all)));
    if (!range || range->least < 0 || range->most >= size || from.ragged(axis)) {
      const Expr here = one >= 0 && one < from.length(axis);
      inside = inside.defined() ? inside && here : here;
    }
    at.push_back(one);
  }
  const Value value = from.at(at);
  if (!inside.defined()) return value;
  return call.interpreter.select(inside, value, nowhere(value), call.at);
}

// Sums each Float of a value over an index; other numbers are none of a sum.
Value sum_over(const PrimitiveCall& call, const Value& value, const Expr& variable) {
  Tape& tape = call.interpreter.tape();
  if (is_bool(value)) refuse(call, "numbers to sum, not Bools");
  if (value.is_number()) return {tape.sum(value.number(), variable)};
  if (value.is_tuple()) {
    Values items;
    for (const Value& item : value.items()) items.push_back(sum_over(call, item, variable));
    return tuple_of(std::move(items));
  }
  if (!value.is_tensor())
    refuse(call, "a function that gives Floats, or tuples or tensors of them");
  // All elements at once: a sum for each would be a node for each.
  const TensorValue& tensor = value.tensor();
  for (const Expr& length : tensor.lengths)
    if (length.defined() &&
        composit::depends_on(length, composit::ExprKind::parameter, variable.number()))
      call.interpreter.refuse(call.at, "'" + call.name + "' of tensors of different sizes");
  const Index own = tape.variables(tensor.sizes);
  const Value sums = sum_over(call, tensor.at(own), variable);
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
      true, tensor.lengths);
}

// The same over all indices of a tensor, the last one first.
Value sum_of(const PrimitiveCall& call, const TensorValue& tensor) {
  const Index index = call.interpreter.tape().variables(tensor.sizes);
  Value value = zero_outside(tensor.inside(index), tensor.at(index));
  for (size_t axis = index.size(); axis-- > 0;) value = sum_over(call, value, index[axis]);
  return value;
}

}  // namespace

Value build(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "a size and a function of an index");
  const Closure f = closure(call, both[1]);
  Sizes all = sizes(call, both[0]);
  return tensor_of(
      std::move(all.most), [f](const Index& index) { return f.call(index_value(index)); }, false,
      std::move(all.lengths));
}
Value sumbuild(PrimitiveCall& call) { return sum_of(call, build(call).tensor()); }
Value sum(PrimitiveCall& call) {
  const Value v = arguments(call, 1, "a tensor")[0];
  if (!v.is_tensor()) refuse(call, "a tensor");
  return sum_of(call, v.tensor());
}
Value size(PrimitiveCall& call) {
  const Value v = arguments(call, 1, "a tensor")[0];
  if (!v.is_tensor()) refuse(call, "a tensor");
  Values items;
  for (size_t axis = 0; axis < v.tensor().sizes.size(); ++axis)
    items.push_back({v.tensor().length(axis)});
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
  if (!x.is_tensor() || !y.is_tensor() || x.tensor().sizes.size() != y.tensor().sizes.size())
    refuse(call, "a function and tensors of one size");
  expect_same_sizes(call, x.tensor(), y.tensor(), "a function and tensors of one size");
  return tensor_like(x.tensor(), [f, x, y, two](const Index& at) {
    return f.call(two ? tuple_of({x.tensor().at(at), y.tensor().at(at)}) : x.tensor().at(at));
  });
}
Value const_vec(PrimitiveCall& call) {
  const Values both = arguments(call, 2, "a size and a value");
  const Value x = both[1];
  Sizes all = sizes(call, both[0]);
  return tensor_of(
      std::move(all.most), [x](const Index&) { return x; }, false, std::move(all.lengths));
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
  if (!is_integer(all[0]) || !is_integer(all[1])) refuse(call, "two Integers and a value");
  return call.interpreter.select(composit::eq(all[0].number(), all[1].number()), all[2],
                                 zero_of(all[2]), call.at);
}
Value delta_vec(PrimitiveCall& call) {
  const Values all = arguments(call, 3, "a size, an index and a value");
  const Values places = all[1].is_tuple() ? all[1].items() : Values{all[1]};
  const Value x = all[2];
  Interpreter& interpreter = call.interpreter;
  const Position at = call.at;
  Sizes extents = sizes(call, all[0]);
  if (places.size() != extents.most.size() ||
      !std::all_of(places.begin(), places.end(), is_integer))
    refuse(call, "a size, an index of as many Integers, and a value");
  const auto element = [&interpreter, places, x, at](const Index& index) {
    Expr here;
    for (size_t i = 0; i < index.size(); ++i) {
      const Expr same = composit::eq(index[i], places[i].number());
      here = here.defined() ? here && same : same;
    }
    return interpreter.select(here, x, zero_of(x), at);
  };
  return tensor_of(std::move(extents.most), element, false, std::move(extents.lengths));
}
Value diagonal(PrimitiveCall& call) {
  const Values all = arguments(call, 3, "two sizes and a Vec");
  const Value v = all[2];
  if (!v.is_tensor() || v.tensor().sizes.size() != 1) refuse(call, "two sizes and a Vec");
  expect_not_ragged(call, v);
  const Sizes rows = sizes(call, all[0]), columns = sizes(call, all[1]);
  if (rows.most.size() != 1 || columns.most.size() != 1) refuse(call, "two sizes and a Vec");
  const int64_t count = v.tensor().sizes[0], least = std::min(rows.most[0], columns.most[0]);
  if (count < least)
    call.interpreter.refuse(call.at, "'diag' expects a Vec of " + std::to_string(least) +
                                         " elements or more, received one of " +
                                         std::to_string(count));
  Index lengths;
  if (!rows.lengths.empty() || !columns.lengths.empty())
    lengths = {rows.lengths.empty() ? Expr() : rows.lengths[0],
               columns.lengths.empty() ? Expr() : columns.lengths[0]};
  Interpreter& interpreter = call.interpreter;
  const Position at = call.at;
  const auto element = [&interpreter, v, at, count](const Index& index) {
    const Value x = v.tensor().at({composit::min(index[0], count - 1)});
    return interpreter.select(composit::eq(index[0], index[1]), x, zero_of(x), at);
  };
  return tensor_of({rows.most[0], columns.most[0]}, element, false, std::move(lengths));
}

namespace {

// True if tensors in two values of one type are of the same sizes, or both of some up to these.
bool keeps_form(Tape& tape, const Value& x, const Value& y) {
  if (x.is_tuple() && y.is_tuple()) {
    bool same = x.items().size() == y.items().size();
    for (size_t i = 0; same && i < x.items().size(); ++i)
      same = keeps_form(tape, x.items()[i], y.items()[i]);
    return same;
  }
  if (!x.is_tensor() || !y.is_tensor()) return true;
  if (x.tensor().sizes != y.tensor().sizes) return false;
  for (size_t axis = 0; axis < x.tensor().sizes.size(); ++axis)
    if (x.tensor().ragged(axis) != y.tensor().ragged(axis)) return false;
  const Index some = tape.variables(x.tensor().sizes);
  return keeps_form(tape, x.tensor().at(some), y.tensor().at(some));
}

// A fold whose result grows: each step has other sizes, and is made for itself.
Value unrolled(Tape& tape, const Closure& f, Value so_far, const TensorValue& v) {
  for (int64_t i = 0; i < v.sizes[0]; ++i)
    so_far = tape.in_memory(f.call(tuple_of({so_far, v.at({Expr(i)})})));
  return so_far;
}

// The start of a fold: what is carried later may be outside of the start's range.
Value without_ranges(Tape& tape, const Value& start) {
  std::vector<Leaf> leaves;
  tape.leaves(start, {}, leaves);
  for (Leaf& one : leaves) one.range.reset();
  size_t next = 0;
  return tape.from_leaves(start, std::make_shared<const std::vector<Leaf>>(std::move(leaves)),
                          next);
}

// fold f init v of a Vec that is not ragged.
Value fold(const PrimitiveCall& call, const Closure& f, const Value& init_value,
           const TensorValue& v) {
  Tape& tape = call.interpreter.tape();
  if (!tape.has_graph()) return unrolled(tape, f, init_value, v);
  const Value start = without_ranges(tape, tape.computed(init_value));
  // Indices of enclosing builds that anything here depends on: each has a fold of its own.
  const Expr i = tape.variable(v.sizes[0]);
  const Value element_value = v.at({i});
  const Value probe = f.call(tuple_of({start, element_value}));
  Interpreter& interpreter = call.interpreter;
  if (const Type from = interpreter.type_of(start), to = interpreter.type_of(probe); !(from == to))
    interpreter.refuse(call.at, "'fold' expects a function that gives " + print(from) +
                                    ", as its start is, received one that gives " + print(to));
  if (v.sizes[0] == 0) return init_value;
  if (!keeps_form(tape, start, probe)) return unrolled(tape, f, init_value, v);
  std::vector<size_t> outer = tape.variables_within(tuple_of({start, element_value, probe}));
  std::erase(outer, i.number());
  std::vector<size_t> with_index = {i.number()};
  with_index.insert(with_index.end(), outer.begin(), outer.end());
  std::vector<Leaf> carried, elements;
  tape.leaves(start, outer, carried);
  for (Leaf& one : carried) one.range.reset();
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
      init, sequences, {.reverse = false, .length = v.sizes[0]});
  size_t next = 0;
  return tape.from_leaves(start, with(carried, end.carried, 0), next);
}

// The elements of a ragged Vec up to its size, each with whether it is there.
TensorValue with_inside(const TensorValue& v) {
  return {v.sizes, [v](const Index& index) { return tuple_of({v.at(index), {v.inside(index)}}); }};
}
// f for such an element that is there; the result so far behind the last one.
Closure until_length(const PrimitiveCall& call, const Closure& f) {
  Interpreter& interpreter = call.interpreter;
  return {[&interpreter, f, at = call.at](const Value& argument) {
    const Value& so_far = argument.items()[0];
    const Value& element = argument.items()[1];
    const Value next = f.call(tuple_of({so_far, element.items()[0]}));
    if (!keeps_form(interpreter.tape(), so_far, next))
      interpreter.refuse(at, "a 'fold' over a ragged Vec whose result grows");
    return interpreter.select(element.items()[1].number(), next, so_far, at);
  }};
}
}  // namespace

// fold f init v: f of the result so far and an element, for each element in its order.
Value fold(PrimitiveCall& call) {
  const Values all = arguments(call, 3, "a function, a start and a Vec");
  const Closure f = closure(call, all[0]);
  if (!all[2].is_tensor() || all[2].tensor().sizes.size() != 1)
    refuse(call, "a function, a start and a Vec");
  const TensorValue& v = all[2].tensor();
  if (v.ragged()) return fold(call, until_length(call, f), all[1], with_inside(v));
  return fold(call, f, all[1], v);
}

}  // namespace flashlight::ks
