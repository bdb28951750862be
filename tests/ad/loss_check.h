// Gradients of functions of several results, against central differences.
//
//   check([](const LazyTensors& x) { return LazyTensors{sin(x[0]) * x[1]}; }, {{3}, {3}});
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "composit/ad/functional.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/graph.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit {

using Numbers = std::vector<double>;

inline LazyTensor held(const std::string& name, const Dims& sizes, const Numbers& numbers) {
  return held_input(name, array_of(tensor_type(DType::float64, sizes), numbers));
}
inline LazyTensor scalar(const std::string& name, double number) {
  return held(name, {}, {number});
}
inline Numbers numbers(const LazyTensor& tensor) { return elements<double>(evaluate({tensor})[0]); }

// Numbers that are neither symmetric nor small.
inline Array sample(const Type& type, int seed) {
  Numbers values(static_cast<size_t>(type.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.6 + 0.35 * std::sin(1.7 * static_cast<double>(i + 1) + seed);
  return array_of(type, values);
}

// A loss of all results of `f`.
inline LossFunction weighted(const TensorFunction& f) {
  return [f](const LazyTensors& inputs) {
    LazyTensor loss;
    int seed = 10;
    for (const LazyTensor& result : f(inputs)) {
      const LazyTensor weight =
          constant(sample(tensor_type(DType::float64, result.type().sizes), ++seed));
      const LazyTensor term = sum(result * weight);
      loss = loss.defined() ? loss + term : term;
    }
    return loss;
  };
}

inline double value_at(const LossFunction& f, const LazyTensors& inputs,
                       const std::vector<Array>& at) {
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i) values.set(inputs[i], at[i]);
  return elements<double>(evaluate({f(inputs)}, values)[0])[0];
}

// Gradients against central differences of the loss; and, as the loss of the next round, the sum of
// the gradients, weighted.
inline void check(const LossFunction& f, const LazyTensors& inputs, const std::vector<Array>& at,
                  int order) {
  const LazyTensors gradients = grad(f)(inputs);
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Values values;
    for (size_t k = 0; k < inputs.size(); ++k) values.set(inputs[k], at[k]);
    const Numbers gradient = elements<double>(evaluate({gradients[i]}, values)[0]);
    for (size_t element = 0; element < gradient.size(); ++element) {
      const auto moved = [&](double step) {
        std::vector<Array> there = at;
        Numbers x = elements<double>(at[i]);
        x[element] += step;
        there[i] = array_of(at[i].type(), x);
        return value_at(f, inputs, there);
      };
      const double difference = (moved(kStep) - moved(-kStep)) / (2 * kStep);
      EXPECT_NEAR(gradient[element], difference, 1e-7 * std::max(1.0, std::abs(difference)))
          << "order " << order << ", input " << i << ", element " << element;
    }
  }
}
inline void check(const TensorFunction& f, const std::vector<Dims>& sizes) {
  LazyTensors inputs;
  std::vector<Array> at;
  for (const Dims& one : sizes) {
    const Type type = tensor_type(DType::float64, one);
    inputs.push_back(input("x" + std::to_string(inputs.size()), type));
    at.push_back(sample(type, static_cast<int>(at.size())));
  }
  const LossFunction loss = weighted(f);
  check(loss, inputs, at, 1);
  check(weighted(grad(loss)), inputs, at, 2);
}

inline size_t count(const Graph& graph, const std::string& op) {
  size_t found = 0;
  for (const NodePtr& node : graph.nodes()) found += node->op().str() == op;
  return found;
}
inline size_t count(const LazyTensors& tensors, const std::string& op) {
  return count(Graph({.outputs = {tensors.begin(), tensors.end()}}), op);
}

}  // namespace composit
