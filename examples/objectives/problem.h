// A differentiable program and data to run it on, for examples, tests and benchmarks.
//
//   Problem problem = gmm_problem({.d = 64, .k = 200, .n = 1000});
//   std::vector<Array> value = evaluate(problem.objective, problem.inputs);
//
// Both graphs take all inputs, in this order. What they give is said where a problem is made.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/numpy/ndarray.h"

namespace objectives {

struct Problem {
  std::string name;  // "gmm_d64_k200_n1000"
  std::vector<composit::Array> inputs;
  composit::Graph objective, gradient;
};

// Arguments of a function, and their values.
class Inputs {
 public:
  composit::numpy::NdArray add(const std::string& name, composit::Array value);
  Problem problem(std::string name, composit::LazyTensors objective,
                  composit::LazyTensors gradient) const;

 private:
  composit::LazyTensors tensors_;
  std::vector<composit::Array> values_;
};

using Function = std::function<composit::numpy::NdArray(const composit::numpy::NdArray&)>;
// Inputs: x, dy. Objective: function(x); gradient: its vjp, the cotangent of x for `dy` of
// function(x).
Problem function_problem(std::string name, const Function& function, composit::Array x,
                         composit::Array dy);

}  // namespace objectives
