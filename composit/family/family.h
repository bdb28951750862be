// A program for all sizes: the graph of one example, and a formula for each integer that differs
// between examples.
//
//   Family family = unify({at_2x16, at_3x23, at_5x12}, {.names = {"batch", "tokens"}});
//   Graph graph = bind(family, {{"batch", 4}, {"tokens", 21}});
//
// The types of the example stay plain integers; `bind` works them out anew. A formula reads sizes
// of earlier values, as the program did: `view(%x, size=[size(%x, 0), size(%x, 1), 4, 8])`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "composit/family/numbers.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/graph.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/size_formula.h"

namespace composit {

// An axis of an input.
struct InputAxis {
  size_t input = 0;  // index into the inputs of the graph
  size_t axis = 0;   // of that input
  bool operator==(const InputAxis&) const = default;
};

// A size that a caller chooses. Axes that were equal in all examples have one size.
struct FreeSize {
  std::string name;             // as calls and errors name it
  std::vector<InputAxis> axes;  // all that have it; at least one
  std::vector<int64_t> shown;   // by example
  int64_t low = 0, high = 0;    // what `bind` takes: from the least to the greatest that was shown
  // … in steps of the greatest common divisor of all distances: where all examples are even, nobody
  // knows what the program does with an odd size.
  int64_t step = 1;
};

// A size of a result that depends on values: rows that a mask selects.
struct ValueSize {
  std::string name;            // "nonzero_0": the value in the text of the example, and the axis
  LazyTensor value;            // of the example
  size_t axis = 0;             // of the value
  std::vector<int64_t> shown;  // by example
};

struct Family {
  Graph example;                            // of the first example
  std::vector<FreeSize> sizes;              // in the order of inputs and axes
  std::vector<ValueSize> value_sizes;       // in the order of nodes
  Formulas formulas;                        // of nodes of the example
  std::vector<FreeNumber> numbers = {};     // that formulas of numbers read
  std::vector<NumberUse> number_uses = {};  // in the order of nodes

  // The number of formulas.
  size_t formula_count() const;
  // Formulas of a node; empty for others.
  const NodeFormulas& formulas_of(const Node& node) const;
};

// The text of the example with formulas in place of integers, and of its sizes:
//
// ```text
//   graph(%ids: int64[2, 16]) { … %view: … = aten::view(%x, size=[size(%x, 0), size(%x, 1), 4]) … }
//   sizes(
//     batch = size(%ids, 0) = size(%mask, 0) shown [2, 3, 5],
//     tokens = size(%ids, 1) = size(%mask, 1) shown [16, 23, 12]
//   )
// ```
//
// The numbers in brackets are those that the examples showed. A size of no input depends on values.
// Numbers that are no sizes follow: see numbers.h.
std::string print(const Family& family, const PrintOptions& options = {});
// UserError with line, column, what was expected and what was received.
Family parse_family(std::string_view text, const ParseOptions& options = {});
// The part of the text after the graph; a family of it, with the names that `Names(example)` gives.
std::string sizes_text(const Family& family);
// The values of a graph by the names that `Names(graph)` gives, without "%".
std::map<std::string, LazyTensor> values_by_name(const Graph& graph);
Family family_of(Graph example, Formulas formulas, const std::string& sizes);
// A size that was shown, with its range and step.
FreeSize free_size(std::string name, std::vector<int64_t> shown);

// Free sizes, and sizes that depend on values, by name.
using SizeValues = std::map<std::string, int64_t>;
// "batch = 4, tokens = 21"
std::string text_of(const SizeValues& sizes);
// "2, 3, 5"
std::string list_of(const std::vector<int64_t>& numbers);
std::string list_of_numbers(const std::vector<double>& numbers);

// Takes these sizes into the ranges of `bind`: the family was compared with the program there.
void widen(Family& family, const SizeValues& sizes);

// "'size' is div(size(%conv2d_3, 2), 2): %upsample = aten::upsample_nearest2d.vec at unet.cpp:40",
// for each formula that is no plain size.
std::vector<std::string> formula_lines(const Family& family);
// "%view = aten::view at gpt.cpp:31"
std::string describe(const Node& node, const Names& names);

// The graph without what depends on sizes though no result does:
//   * what a composite recorded of its inside (`body`) is left out where a row says what it means:
//     an operator chooses its kernels by sizes. Where none does, and where the body asks a question
//     on the host, its nodes take the place of the composite.
//   * strides of axes of one element, which address nothing, are those of a dense tensor.
Graph without_incidentals(const Graph& graph);
// The strides of `type` as said above.
Type with_plain_unit_strides(Type type);

}  // namespace composit
