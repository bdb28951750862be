// Tensors by their elements and where these lie; shapes; tensors of tuples apart.
#include "composit/ops/functions.h"
#include "frontends/ks/primitives.h"

namespace flashlight::ks {
namespace {

using composit::DType;

// Sums, into the elements at `places` of a tensor of zeros, a number for each value of `loop`.
class Scatter {
 public:
  Scatter(Tape& tape, composit::Ints sizes, const Index& places, const Index& loop)
      : tape_(tape), sizes_(std::move(sizes)), places_(places) {
    for (const Expr& one : loop) loop_.push_back(one.number());
  }

  // The sums of a value's numbers; indices of tensors in it are axes of their own.
  Value of(const Value& value, const Index& own, const Index& at) {
    if (value.is_tuple()) {
      Values items;
      for (const Value& item : value.items()) items.push_back(of(item, own, at));
      return tuple_of(std::move(items));
    }
    if (value.is_number()) return {number(value.number(), own, at)};
    const TensorValue tensor = value.tensor();
    return tensor_of(tensor.sizes, [this_ = *this, tensor, own, at](const Index& index) mutable {
      Index inner = own, outer = at;
      for (size_t i = 0; i < index.size(); ++i) {
        inner.push_back(this_.tape_.variable(tensor.sizes[i]));
        outer.push_back(index[i]);
      }
      const Index mine(inner.end() - std::ssize(index), inner.end());
      return this_.of(tensor.at(mine), inner, outer);
    });
  }

 private:
  Expr number(const Expr& value, const Index& own, const Index& at) {
    std::vector<Expr> all = places_;
    all.push_back(value);
    std::vector<size_t> outer = tape_.variables_of(all);
    const auto drop = [&](size_t variable) { std::erase(outer, variable); };
    for (const size_t one : loop_) drop(one);
    for (const Expr& one : own) drop(one.number());

    // The axes of the result: indices of enclosing builds, its own, those of tensors in it.
    std::vector<size_t> axes = outer;
    axes.insert(axes.end(), loop_.begin(), loop_.end());
    Index result;
    composit::Ints result_sizes;
    composit::LazyTensors indices;
    for (const size_t one : outer) {
      const Expr index = Expr::parameter(one, DType::int64);
      indices.push_back(tape_.tensor(index, axes));
      result.push_back(index);
      result_sizes.push_back(tape_.range(index)->most + 1);
    }
    for (size_t i = 0; i < places_.size(); ++i) {
      indices.push_back(tape_.tensor(places_[i], axes));
      result.push_back(at[i]);
      result_sizes.push_back(sizes_[i]);
    }
    for (size_t i = 0; i < own.size(); ++i) {
      axes.push_back(own[i].number());
      result.push_back(at[places_.size() + i]);
      result_sizes.push_back(tape_.range(own[i])->most + 1);
    }
    const LazyTensor sums = composit::apply_one(
        "aten::index_put",
        {composit::zeros(result_sizes, value.dtype()), indices, tape_.tensor(value, axes), true});
    return tape_.load(sums, result);
  }

  Tape& tape_;
  composit::Ints sizes_;
  Index places_;
  std::vector<size_t> loop_;
};

// One tensor of `shape`, of the pairs of an index and an element that `pair` is one of.
Value from_pairs(const PrimitiveCall& call, const Value& shape, const Value& pair,
                 const Index& loop) {
  const char* expected =
      "a tensor of the result's sizes, a size, and a function that gives an "
      "index and an element";
  if (!shape.is_tensor() || !pair.is_tuple() || pair.items().size() != 2) refuse(call, expected);
  expect_not_ragged(call, shape);
  expect_not_ragged(call, pair);
  Interpreter& interpreter = call.interpreter;
  const Value& place = pair.items()[0];
  const Values items = place.is_tuple() ? place.items() : Values{place};
  const composit::Ints sizes = shape.tensor().sizes;
  if (items.size() != sizes.size()) refuse(call, expected);
  Index places;
  for (const Value& one : items) {
    if (!is_integer(one)) refuse(call, expected);
    // A place below 0 is beyond the tensor, as one above its size is: not counted from its end.
    const auto range = interpreter.tape().range(one.number());
    const bool may_be_below = !range || range->least < 0;
    places.push_back(may_be_below
                         ? composit::select(one.number() < 0, sizes[places.size()], one.number())
                         : one.number());
  }
  const Value element = pair.items()[1];
  return tensor_of(sizes, [&interpreter, sizes, places, loop, element](const Index& index) {
    return Scatter(interpreter.tape(), sizes, places, loop).of(element, {}, index);
  });
}

bool has_sizes(const Value& value) {
  if (value.is_tuple()) return std::any_of(value.items().begin(), value.items().end(), has_sizes);
  return value.is_tensor();
}

}  // namespace

// The sum of all elements that a function gives for the same index, zero elsewhere.
Value build_from_sparse(PrimitiveCall& call) {
  const Values all = arguments(call, 3, "a shape, a size and a function of an index");
  const Sizes steps = sizes(call, all[1]);
  if (!steps.lengths.empty())
    call.interpreter.refuse(call.at,
                            "'" + call.name + "' of as many elements as a value or an index says");
  const Index loop = call.interpreter.tape().variables(steps.most);
  const Value pairs = closure(call, all[2]).call(index_value(loop));
  if (call.name == "buildFromSparse") return from_pairs(call, all[0], pairs, loop);
  if (!all[0].is_tuple() || !pairs.is_tuple() || all[0].items().size() != pairs.items().size())
    refuse(call, "as many shapes as the function gives pairs");
  Values tensors;
  for (size_t i = 0; i < pairs.items().size(); ++i)
    tensors.push_back(from_pairs(call, all[0].items()[i], pairs.items()[i], loop));
  return tuple_of(std::move(tensors));
}

// A tuple of tensors, of a tensor of tuples.
Value unzip(PrimitiveCall& call) {
  const Value v = arguments(call, 1, "a tensor of tuples")[0];
  if (!v.is_tensor()) refuse(call, "a tensor of tuples");
  const Index some = call.interpreter.tape().variables(v.tensor().sizes);
  const Value element = v.tensor().at(some);
  if (!element.is_tuple()) refuse(call, "a tensor of tuples");
  Values tensors;
  for (size_t i = 0; i < element.items().size(); ++i)
    tensors.push_back(tensor_of(
        v.tensor().sizes, [v, i](const Index& index) { return v.tensor().at(index).items()[i]; },
        v.tensor().in_memory, v.tensor().lengths));
  return tuple_of(std::move(tensors));
}

Value shape_of(const Value& value) {
  if (!has_sizes(value)) return tuple_of({});
  if (value.is_tuple()) {
    Values items;
    for (const Value& item : value.items()) items.push_back(shape_of(item));
    return tuple_of(std::move(items));
  }
  Values extents;
  for (size_t axis = 0; axis < value.tensor().sizes.size(); ++axis)
    extents.push_back({value.tensor().length(axis)});
  const Value element = value.tensor().at(Index(extents.size(), Expr(int64_t{0})));
  if (!has_sizes(element)) return extents.size() == 1 ? extents[0] : tuple_of(std::move(extents));
  return tensor_like(value.tensor(),
                     [value](const Index& index) { return shape_of(value.tensor().at(index)); });
}
Value shape(PrimitiveCall& call) {
  return shape_of(call.arguments.size() == 1 ? call.arguments[0] : tuple_of(call.arguments));
}

}  // namespace flashlight::ks
