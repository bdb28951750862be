// Graphs that are called by their text, as compiled functions are within programs that are
// captured.
#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"

namespace composit {

void add_graphs_rows(OperationTable& rows) {
  // `compiled`: who compiles it, for those who run the operation; no part of its meaning.
  rows.add({.schema = "composit::evaluate(Tensor[] inputs, str graph, str compiled) -> Tensor[]",
            .decompose = [](LazyTensors inputs, std::string text) {
              const Graph graph = parse(text);
              if (graph.inputs().size() != inputs.size())
                throw UserError("expected " + std::to_string(graph.inputs().size()) +
                                " inputs, received " + std::to_string(inputs.size()));
              LazyTensors row_major;
              for (size_t i = 0; i < inputs.size(); ++i) {
                const Type& expected = graph.inputs()[i].type();
                if (inputs[i].dtype() != expected.dtype || inputs[i].sizes() != expected.sizes)
                  throw UserError("expected " + print(expected) + " for input " +
                                  std::to_string(i) + ", received " + print(inputs[i].type()));
                row_major.push_back(apply_one("aten::contiguous", {inputs[i]}));
              }
              return inlined(graph, row_major);
            }});
}

}  // namespace composit
