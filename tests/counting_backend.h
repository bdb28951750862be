// Counts what it is given to compile and to run, and leaves the work to the reference.
//
//   const CountingBackend backend;   evaluate(outputs, {}, backend);   backend.nodes == 5
#pragma once

#include <string>
#include <vector>

#include "composit/eval/evaluate.h"

namespace composit::test {

class CountingBackend : public Backend {
 public:
  std::string name() const override { return "counting"; }
  mutable size_t compiled = 0, run = 0;  // how often
  mutable size_t nodes = 0;              // of all graphs compiled

 protected:
  Compiled make(const Graph& graph, const CompileOptions& options) const override {
    ++compiled;
    nodes += graph.size();
    return code_of(graph, options.name,
                   [this, f = reference().compile(graph)](const std::vector<Array>& inputs) {
                     ++run;
                     return f(inputs);
                   });
  }
};

}  // namespace composit::test
