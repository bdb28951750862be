// Derivatives of functions of a program: composit's, of the graph that a function becomes.
//
// A value's tangent has its form, with (tuple) in the place of what is no Float. A call within
// `build`s is one call for all indices; each index has its own arguments, and so its own gradients.
#include "composit/ad/functional.h"
#include "frontends/ks/interpreter.h"
#include "frontends/ks/parse.h"

namespace flashlight::ks {
namespace {

using Leaves = std::vector<Leaf>;

bool is_float(const Leaf& leaf) { return composit::is_floating_point(leaf.tensor.dtype()); }

Value tangent_form(const Value& value) {
  if (value.is_number())
    return composit::is_floating_point(value.number().dtype()) ? value : tuple_of({});
  if (value.is_tuple()) {
    Values items;
    for (const Value& item : value.items()) items.push_back(tangent_form(item));
    return tuple_of(std::move(items));
  }
  if (!value.is_tensor()) return tuple_of({});
  return tensor_like(value.tensor(), [value](const Index& index) {
    return tangent_form(value.tensor().at(index));
  });
}

// A tangent of `of`, as long as it where it is ragged. What is not ragged, and of the largest
// sizes, may be given: behind the lengths it means nothing.
Value with_lengths_of(Interpreter& interpreter, const Value& of, const Value& tangent,
                      Position at) {
  if (of.is_tuple() && tangent.is_tuple() && of.items().size() == tangent.items().size()) {
    Values items;
    for (size_t i = 0; i < of.items().size(); ++i)
      items.push_back(with_lengths_of(interpreter, of.items()[i], tangent.items()[i], at));
    return tuple_of(std::move(items));
  }
  if (!of.is_tensor() || !tangent.is_tensor() || of.tensor().sizes != tangent.tensor().sizes)
    return tangent;
  if (tangent.tensor().ragged() && !same_sizes(of.tensor(), tangent.tensor()))
    interpreter.refuse(at,
                       "a derivative gets a ragged tangent whose sizes are not known to be those "
                       "of what it is a tangent of: build it over these");
  return tensor_like(of.tensor(), [&interpreter, of, tangent, at](const Index& index) {
    return with_lengths_of(interpreter, of.tensor().at(index), tangent.tensor().at(index), at);
  });
}

// A function at an argument, as one of the tensors of its Floats.
class Differentiated {
 public:
  Differentiated(Interpreter& interpreter, const Name& function, const Value& argument,
                 const Value& direction, Position at)
      : interpreter_(interpreter), function_(function), argument_(argument), at_(at) {
    Tape& tape = interpreter.tape();
    outer_ = tape.variables_within(tuple_of({argument, direction}));
    tape.leaves(argument, outer_, leaves_);
  }

  LazyTensors inputs() const { return floats(leaves_); }

  composit::TensorFunction function() {
    return [this](const LazyTensors& inputs) {
      Leaves now = with(leaves_, inputs);
      size_t next = 0;
      const Value given = interpreter_.tape().from_leaves(
          argument_, std::make_shared<const Leaves>(std::move(now)), next);
      result_ = interpreter_.call(function_, given, at_);
      Leaves results;
      interpreter_.tape().leaves(*result_, outer_, results);
      results_ = results;
      return floats(results);
    };
  }

  // The result of `function`, which was called; a ragged one at the argument itself, whose lengths
  // the tangent has.
  const Value& result() {
    if (!interpreter_.tape().is_ragged(*result_)) return *result_;
    result_ = interpreter_.call(function_, argument_, at_);
    results_.clear();
    interpreter_.tape().leaves(*result_, outer_, results_);
    return *result_;
  }

  // The Floats of a tangent of the argument, or of the result.
  LazyTensors tangents(const Value& of, const Value& tangent, const Leaves& like) {
    Tape& tape = interpreter_.tape();
    // In memory, equal lengths are the same.
    const Value direction = tape.is_ragged(of) ? with_lengths_of(interpreter_, tape.in_memory(of),
                                                                 tape.in_memory(tangent), at_)
                                               : tangent;
    Leaves given;
    interpreter_.tape().leaves(direction, outer_, given);
    const LazyTensors tensors = floats(given), expected = floats(like);
    bool fit = tensors.size() == expected.size();
    for (size_t i = 0; fit && i < tensors.size(); ++i)
      fit = tensors[i].sizes() == expected[i].sizes();
    if (!fit)
      interpreter_.refuse(at_, "the derivative of '" + print(function_) +
                                   "' expects a tangent of another form, received " +
                                   print(interpreter_.type_of(direction)));
    return tensors;
  }
  const Leaves& leaves() const { return leaves_; }
  const Leaves& results() const { return results_; }

  Value tangent_of_argument(const LazyTensors& tensors) {
    return tangent(argument_, leaves_, tensors);
  }
  Value tangent_of_result(const LazyTensors& tensors) {
    return tangent(*result_, results_, tensors);
  }

 private:
  static LazyTensors floats(const Leaves& leaves) {
    LazyTensors tensors;
    for (const Leaf& leaf : leaves)
      if (is_float(leaf)) tensors.push_back(leaf.tensor);
    return tensors;
  }
  static Leaves with(Leaves leaves, const LazyTensors& tensors) {
    size_t next = 0;
    for (Leaf& leaf : leaves)
      if (is_float(leaf)) leaf.tensor = tensors.at(next++);
    return leaves;
  }
  Value tangent(const Value& of, const Leaves& leaves, const LazyTensors& tensors) {
    Leaves made;
    size_t next = 0;
    for (const Leaf& leaf : leaves) {
      if (leaf.is_length) made.push_back(leaf);
      if (is_float(leaf)) made.push_back({tensors.at(next++), leaf.variables});
    }
    next = 0;
    return interpreter_.tape().from_leaves(tangent_form(of),
                                           std::make_shared<const Leaves>(std::move(made)), next);
  }

  Interpreter& interpreter_;
  const Name& function_;
  const Value& argument_;
  Position at_;
  std::vector<size_t> outer_;
  Leaves leaves_, results_;
  std::optional<Value> result_;
};

// The argument of a function and a tangent.
std::pair<Value, Value> pair_of(Interpreter& interpreter, const Name& of, const Value& argument,
                                Position at) {
  if (!argument.is_tuple() || argument.items().size() != 2)
    interpreter.refuse(at, "a derivative of '" + print(of) +
                               "' expects its argument and a tangent, received " +
                               print(interpreter.type_of(argument)));
  return {argument.items()[0], argument.items()[1]};
}

}  // namespace

Value reverse_derivative(Interpreter& interpreter, const Name& of, const Value& argument,
                         Position at) {
  const auto [point, cotangent] = pair_of(interpreter, of, argument, at);
  Differentiated one(interpreter, of, point, cotangent, at);
  const composit::Pullback pullback = composit::vjp(one.function(), one.inputs());
  return one.tangent_of_argument(
      pullback.back(one.tangents(one.result(), cotangent, one.results())));
}

Value forward_derivative(Interpreter& interpreter, const Name& of, const Value& argument,
                         Position at) {
  const auto [point, direction] = pair_of(interpreter, of, argument, at);
  Differentiated one(interpreter, of, point, direction, at);
  const composit::Pushforward pushed =
      composit::jvp(one.function(), one.inputs(), one.tangents(point, direction, one.leaves()));
  one.result();
  return one.tangent_of_result(pushed.tangents);
}

}  // namespace flashlight::ks
