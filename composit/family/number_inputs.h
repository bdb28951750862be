// The graph of a family whose numbers are inputs of it, for code that is compiled once for all of
// them.
//
//   Graph graph = with_number_inputs(family, bind_sizes(family, sizes), {"calls", "lr"});
//
// Each number becomes a further input behind the others: float64 without axes. `mul(%x, other=1.0 -
// lr)` becomes a product with a tensor that is computed of it, rounded to the dtype of the result
// as LibTorch rounds a number.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "composit/family/bind.h"

namespace composit {

// UserError where an operator has a number that no tensor can stand for. `names`: of all numbers
// that callers give or that are counted, in the order of the inputs; the family may have others.
Graph with_number_inputs(const Family& family, const Binding& binding,
                         const std::vector<std::string>& names);

// A number of a graph that follows from values of it.
struct NumberInside {
  const Node* node;                         // of the graph
  std::string key;                          // a NumberKey; "value" of a constant
  NumberFormula formula;                    // what it is
  std::map<std::string, LazyTensor> reads;  // names in the formula: values that the program reads
};

// The graph in which tensors stand for these numbers, without the reads. UserError as above, and
// for a node inside of another one.
Graph with_numbers_inside(const Graph& graph, const std::vector<NumberInside>& numbers);

}  // namespace composit
