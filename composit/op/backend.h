// What runs graphs. Implement it to add your own.
//
//   const Backend::Callable f = backend.compile(graph);     std::vector<Array> results = f(inputs);
//
// composit has `reference()` (composit/eval), which interprets the definitions of operations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/graph.h"

namespace composit {

class Backend {
 public:
  // Takes an array per input of the graph, in order; gives one per output, then one per mutation.
  // An output that is an undefined tensor is an undefined array.
  using Callable = std::function<std::vector<Array>(const std::vector<Array>&)>;

  virtual ~Backend() = default;
  // "reference", "cpp", …: for messages.
  virtual std::string name() const = 0;
  // UserError that lists all operations of `graph` the backend has no code for.
  virtual Callable compile(const Graph& graph) const = 0;
};

}  // namespace composit
