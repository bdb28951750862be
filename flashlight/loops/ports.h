// What a compiled graph takes and gives, as arrays.
//
//   const Ports ports = ports_of(graph, "relu3");
//   std::vector<Array> y = ports.call(inputs, [&](const auto& from, const auto& to) { ... });
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/graph.h"

namespace flashlight::loops {

struct Ports {
  std::string program;  // for messages
  std::vector<std::string> input_names;
  std::vector<composit::Type> inputs;
  std::vector<composit::Type> results;  // an undefined one: an output that is absent

  // UserError for an array of another dtype or other sizes than input `input`.
  void check(size_t input, const composit::Array& given) const;
  // What the caller gave for an input; UserError where that is nothing, and it has elements.
  const void* given(size_t input, const std::vector<const void*>& inputs) const;
  // Arrays for the results that `run` writes from those of the inputs, nullptr for an undefined
  // one. UserError for arrays of other types.
  using Run = std::function<void(const std::vector<const void*>&, const std::vector<void*>&)>;
  std::vector<composit::Array> call(const std::vector<composit::Array>& arrays,
                                    const Run& run) const;
};

// Outputs, then what mutated inputs become.
Ports ports_of(const composit::Graph& graph, const std::string& program);

}  // namespace flashlight::loops
