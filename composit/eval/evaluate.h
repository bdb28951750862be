// Values of graphs.
//
//   Array y = evaluate({y_lazy}, {{x_lazy, array}})[0];
//   Values all = evaluate_all({loss}, {{x_lazy, array}});    Array hidden = all[hidden_lazy];
//
// Only what is needed is computed, each node once, and each value is freed after its last use.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "composit/ir/flat_map.h"
#include "composit/op/backend.h"
#include "composit/op/operation.h"

namespace composit {

// Arrays by the tensor of a graph they are the value of; equal tensors have one value.
class Values {
 public:
  Values() = default;
  // Values as pairs; the last of two pairs for one tensor counts.
  Values(std::initializer_list<std::pair<LazyTensor, Array>> values);
  void set(const LazyTensor& tensor, Array value);  // replaces the value that was there
  // UserError where there is none.
  const Array& operator[](const LazyTensor& tensor) const;
  // nullptr where there is none.
  const Array* find(const LazyTensor& tensor) const { return values_.find(tensor.hash()); }
  size_t size() const { return values_.size(); }  // number of tensors that have a value

 private:
  FlatMap<Hash, Array> values_;
};

// Interprets the definitions of operations; slow, and the measure of every other backend. A node
// without a definition is evaluated by its region, if it has one. Random draws and other effects
// are refused; guards on values and on sizes that depend on values are checked.
const Backend& reference();

// Inputs that `inputs` leaves out have the value they hold (`held_input`). UserError naming an
// input that has no value, or two, or whose value has another dtype or other sizes.
std::vector<Array> evaluate(const LazyTensors& outputs, const Values& inputs = {},
                            const Backend& backend = reference());
// The same for a graph, inputs in its order: outputs, then what is written to mutated inputs.
std::vector<Array> evaluate(const Graph& graph, const std::vector<Array>& inputs,
                            const Backend& backend = reference());
// The values of all tensors on the way, by the reference.
Values evaluate_all(const LazyTensors& outputs, const Values& inputs = {});

// One call of one operation; `values` per place of Call::tensors().
std::vector<Array> evaluate(const Operation& operation, const Call& call,
                            const std::vector<Array>& values);

}  // namespace composit
