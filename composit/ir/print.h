// Graphs as text that `parse` reads back; parse.h has the grammar.
//
//   std::cout << print(graph);
//   print(file, graph, {.arrays = &store});     // large arrays into the store
//   print(node, Names(graph), {.brief = true}); // one line for an error message
//
// The text is deterministic; printing takes time linear in the size of the graph.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "composit/ir/array_store.h"
#include "composit/ir/attribute.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/graph.h"
#include "composit/ir/size_formula.h"
#include "composit/ir/type.h"

namespace composit {

// Options of printing: how much is printed, and the store for large arrays.
struct PrintOptions {
  ArrayStore* arrays = nullptr;        // takes arrays of more than `inline_elements`, where given
  int64_t inline_elements = 64;        // largest array in the text; larger ones need a store
  bool annotations = true;             // as remarks after nodes
  const Formulas* formulas = nullptr;  // printed in place of the integers that they give
  // For readers only, does not parse: larger arrays without elements, regions without nodes.
  bool brief = false;
};

// Names of the values of a graph in its text. An input has its own name, made a word; an output of
// a node has the name of the operation, with a number if that is taken ("linear", "linear_1"). Each
// region has its own names.
class Names {
 public:
  // The names of the values of `graph`. Linear in its size.
  explicit Names(const Graph& graph);
  // "%linear_1"; "none" for an absent tensor; "%?" for a value that is not of this graph.
  std::string of(const LazyTensor& tensor) const;
  std::string of(const Node& node, size_t output) const;

 private:
  struct Name {
    uint32_t word;    // index in `words_`
    uint32_t number;  // printed after the word, unless 0
  };
  class Maker;
  FlatMap<const Node*, size_t> first_;  // place of output 0 in `names_`
  std::vector<std::string> words_;
  std::vector<Name> names_;
};

// The text of a graph. UserError if it has an array that needs a store and none is given.
std::string print(const Graph& graph, const PrintOptions& options = {});
// The same, written to a stream.
void print(std::ostream& out, const Graph& graph, const PrintOptions& options = {});

// Without the indentation and the end of the line.
std::string print(const Node& node, const Names& names, const PrintOptions& options = {});
// Parts of the text: "float32[2, 3] strides=[1, 2]", "int[1, 2]".
std::string print(const Type& type);
std::string print(const Attribute& attribute, const PrintOptions& options = {});

}  // namespace composit
