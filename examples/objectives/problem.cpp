#include "examples/objectives/problem.h"

#include "composit/ad/chain_rule.h"

namespace objectives {

composit::numpy::NdArray Inputs::add(const std::string& name, composit::Array value) {
  tensors_.push_back(composit::input(name, value.type()));
  values_.push_back(std::move(value));
  return tensors_.back();
}

Problem Inputs::problem(std::string name, composit::LazyTensors objective,
                        composit::LazyTensors gradient) const {
  return {.name = std::move(name),
          .inputs = values_,
          .objective = composit::Graph({.inputs = tensors_, .outputs = std::move(objective)}),
          .gradient = composit::Graph({.inputs = tensors_, .outputs = std::move(gradient)})};
}

Problem function_problem(std::string name, const Function& function, composit::Array x,
                         composit::Array dy) {
  Inputs inputs;
  const composit::numpy::NdArray argument = inputs.add("x", std::move(x));
  const composit::numpy::NdArray cotangent = inputs.add("dy", std::move(dy));
  const composit::numpy::NdArray result = function(argument);
  return inputs.problem(std::move(name), {result},
                        composit::chain_rule({{result, cotangent}}, {argument}));
}

}  // namespace objectives
