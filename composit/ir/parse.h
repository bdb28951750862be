// Graphs from the text that `print` writes, or that people write.
//
//   Graph graph = parse("graph(%x: float32[2]) {\n"
//                       "  %relu: float32[2] = aten::relu(%x)\n"
//                       "  return %relu\n"
//                       "}\n");
//   parse(print(graph)) == graph;
//
// Grammar. White space separates; a new line is white space but for remarks.
//
// ```text
//   graph      = "graph" body
//   body       = "(" [ input { "," input } ] ")" "{" { statement } "return" [ values ] "}"
//   input      = name ":" type [ kind ] [ string ] [ "(" attributes ")" ] [ remark ]
//   kind       = "user_input" | "parameter" | "buffer" | "block"
//   statement  = [ names ":" types "=" ] op "(" [ argument { "," argument } ] ")"
//                [ "{" attributes "}" ] [ remark ]
//              | "mutate" name "=" value
//   argument   = value | "[" [ values ] "]" | attribute
//   attributes = attribute { "," attribute }
//   attribute  = key "=" constant
//   values     = value { "," value }         value = name | "none"
//   names      = name { "," name }           name  = "%" [A-Za-z0-9_]+
//   op, key    = word | string               word  = [A-Za-z_][A-Za-z0-9_.:]*
//                                            but "mutate", "return" and "none" stand in quotes
//   types      = type { "," type }
//   type       = "none" | dtype "[" [ integers ] "]" { "layout=" word | "strides=" "[" integers "]"
//                                                     | "device=" word | "conj" | "neg" }
//   remark     = "#" { [ integer "." ] key "=" ( string | nonspace+ ) } end of line
// ```
//
//   * An input without kind is a user input, in a region a block. Its name is `string`, or the text
//     of `name`. An input that others depend on stands in the list, never as a statement.
//   * Arguments are the tensors in the order of the op's schema, then attributes. Braces hold the
//     execution attributes. The nodes that have `effect` among them are the graph's effects, in the
//     order of its values.
//   * A type without strides is contiguous; `none` is the type of an undefined tensor.
//   * A remark after a node, on the line on which it ends, holds its annotations; `2.key=value`
//     is one on operand 2. Other comments are ignored.
//   * Names hold from their statement to the end of the body. A region sees none of those outside.
//     A node that neither has an effect nor leads to what is returned is no part of the graph.
//
// ```text
//   constant   = "none" | "true" | "false" | integer | float | string
//              | dtype | layout | memory_format              by its name
//              | "device(" word ")" | "generator(" string ")" | "complex(" float "," float ")"
//              | "scalar(" constant [ "," "wrapped" ] ")"     bool, integer, float or complex
//              | [ element ] "[" [ constant { "," constant } ] "]"
//              | "array(" type "," "[" elements "]" ")" | "array(" type "@" string ")"
//              | "region" body
//   element    = "bool" | "int" | "float" | "complex" | "string" | "dtype" | "device" | "layout"
//              | "memory_format" | "generator" | "scalar" | "list" | "array" | "any"
// ```
//
//   * A float has a point or an exponent, or is inf, nan, -inf or -nan; a hexadecimal integer
//     is the float with these bits. Strings have the escapes \" \\ \n \xHH.
//   * A list may leave out its elements' kind where all that are not none have one kind. `any` is
//     the kind of a list of mixed elements.
//   * An array's elements stand in row-major order, those an axis of stride 0 repeats only once:
//     decimal, true, false, complex(re, im), or the bits in hexadecimal. `@` names an array of the
//     store.
//   * Where formulas are read (`ParseOptions::formulas`), one may stand in place of an integer of
//   an
//     attribute, and of a size of a node's result: composit/ir/size_formula.h. The graph has the
//     integer that it gives.
//   * `opaque("...")` is printed, but names an object of a process: reading it is an error.
//
// Whatever the text, the result is a graph that `verify` accepts or a UserError with line, column,
// what was expected and what was received. Time and memory are linear in the text, with at most
// `kMaxArrayGaps` bytes more for the gaps that strides leave between elements.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "composit/ir/array_store.h"
#include "composit/ir/graph.h"
#include "composit/ir/size_formula.h"

namespace composit {

// Bytes: see above.
inline constexpr int64_t kMaxArrayGaps = int64_t{256} << 20;

class Lexer;

// The origin of a text, and what it has beside a graph.
struct ParseOptions {
  const ArrayStore* arrays = nullptr;  // has the arrays that the text names by "@"
  std::string file = "graph";          // name of the text in errors
  int first_line = 1;                  // number of the text's first line in that file
  // Takes the formulas that stand in place of integers. Without it the text has none.
  Formulas* formulas = nullptr;
  // Reads what follows the graph; `find` gives the values of the graph by name (without "%"),
  // absent ones for other names. Without it nothing may follow.
  using Find = std::function<LazyTensor(std::string_view name)>;
  std::function<void(Lexer& lexer, const Find& find)> rest = nullptr;
};

// The graph of a text. UserError as above.
Graph parse(std::string_view text, const ParseOptions& options);
Graph parse(std::string_view text, const ArrayStore* arrays = nullptr);

// Reads the type, or the constant, that comes next. For parsers of other texts.
Type read_type(Lexer& lexer);
Attribute read_constant(Lexer& lexer);

}  // namespace composit
