// Graphs as text that `parse` reads back; parse.h has the grammar.
//
//   std::cout << print(graph);
//   print(file, graph, {.arrays = &store});     // large arrays into the store
//   print(node, Names(graph), {.brief = true}); // one line for an error message
//
// Deterministic, and linear in the size of the graph.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "composit/ir/array_store.h"
#include "composit/ir/attribute.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/graph.h"
#include "composit/ir/type.h"

namespace composit {

// How much is printed, and where large arrays go.
struct PrintOptions {
  ArrayStore* arrays = nullptr;  // takes arrays of more than `inline_elements`, where given
  int64_t inline_elements = 64;  // of arrays in the text; larger ones need a store
  bool annotations = true;       // as remarks behind nodes
  // For readers only, does not parse: larger arrays without elements, regions without nodes.
  bool brief = false;
};

// What the values of a graph are called in its text: inputs by their own name made a word, outputs
// of nodes by their operation ("linear", "linear_1"), numbered where that is taken. Regions have
// names of their own.
class Names {
 public:
  // The names of the values of `graph`. Linear in its size.
  explicit Names(const Graph& graph);
  // "%linear_1"; "none" for an absent tensor; "%?" for a value that is not of this graph.
  std::string of(const LazyTensor& tensor) const;
  std::string of(const Node& node, size_t output) const;

 private:
  struct Name {
    uint32_t word;    // of `words_`
    uint32_t number;  // printed behind it, unless 0
  };
  class Maker;
  FlatMap<const Node*, size_t> first_;  // place of output 0 in `names_`
  std::vector<std::string> words_;
  std::vector<Name> names_;
};

// The text of a graph. UserError where it has an array that needs a store and none is given.
std::string print(const Graph& graph, const PrintOptions& options = {});
// The same, written to a stream.
void print(std::ostream& out, const Graph& graph, const PrintOptions& options = {});

// Without the indentation and the end of the line.
std::string print(const Node& node, const Names& names, const PrintOptions& options = {});
// Parts of the text: "float32[2, 3] strides=[1, 2]", "int[1, 2]".
std::string print(const Type& type);
std::string print(const Attribute& attribute, const PrintOptions& options = {});

}  // namespace composit
