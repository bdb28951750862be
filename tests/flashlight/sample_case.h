// A sample of a row as a graph with values for its inputs, for tests of backends.
#pragma once

#include <string>

#include "composit/op/samples.h"
#include "composit/ops/operations.h"

namespace flashlight::test {

// Case: a struct of a text for messages, a graph, and a value for each of its inputs.
template <class Case>
Case sample_case(const composit::Operation& operation, const std::string& text,
                 composit::DType floats) {
  const composit::SampleCall sample = composit::parse_sample(operation.schema, text, floats);
  const composit::NodePtr node = sample.call.node(composit::infer(operation, sample.call));
  Case one = {operation.schema.name.str() + ": " + text, {}, {}};
  composit::Graph::Parts parts;
  for (size_t i = 0; i < sample.call.tensors().size(); ++i) {
    const composit::LazyTensor& tensor = sample.call.tensors()[i];
    if (!tensor.defined() || !composit::is_input(*tensor.node)) continue;
    parts.inputs.push_back(tensor);
    one.values.push_back(sample.values[i]);
  }
  for (uint32_t i = 0; i < node->outputs().size(); ++i)
    if (composit::is_defined(node->outputs()[i])) parts.outputs.push_back({node, i});
  one.graph = composit::Graph(std::move(parts));
  return one;
}

}  // namespace flashlight::test
