// Integers that follow from the sizes of tensors, as `4 * x.size(0)` in a program.
//
//   SizeFormula rows = size_of(x, 0) * size_of(x, 1);
//   rows.evaluate([](const LazyTensor& tensor, size_t axis) { return tensor.sizes()[axis]; });
//   print(rows, names);                    // "size(%x, 0) * size(%x, 1)"
//   read_formula(lexer, find) == rows;
//
// Grammar
//
// ```text
//   formula = term { ("+" | "-") term }          term = factor { "*" factor }
//   factor  = integer | "(" formula ")" | "size(" value "," integer ")"
//           | function "(" formula "," formula ")"
//   function = "div" | "ceil_div" | "exact_div" | "mod" | "min" | "max"
// ```
//
// `div` rounds towards minus infinity, `ceil_div` towards plus infinity, and `exact_div` refuses
// what leaves a remainder; `mod` has the sign of its second argument: a == div(a, b) * b + mod(a,
// b). Immutable; formulas share their parts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "composit/ir/flat_map.h"
#include "composit/ir/graph.h"

namespace composit {

class Lexer;
class Names;

class SizeFormula {
 public:
  // The leaves, and the functions of two formulas.
  enum class Kind : uint8_t {
    constant,
    size,
    add,
    subtract,
    multiply,
    div,
    ceil_div,
    exact_div,
    mod,
    min,
    max
  };
  // The size of an axis of a tensor, an axis that it has.
  using SizeOf = std::function<int64_t(const LazyTensor& tensor, size_t axis)>;

  SizeFormula() : SizeFormula(int64_t{0}) {}
  SizeFormula(int64_t constant);  // NOLINT: an integer is a formula
  // InternalError for an absent tensor.
  static SizeFormula size(LazyTensor tensor, size_t axis);
  // InternalError for a leaf.
  static SizeFormula call(Kind function, SizeFormula left, SizeFormula right);

  Kind kind() const;                 // a leaf, or the function
  int64_t constant() const;          // of a constant
  const LazyTensor& tensor() const;  // of a size
  size_t axis() const;               // of a size
  const SizeFormula& left() const;   // of a function
  const SizeFormula& right() const;  // of a function

  // UserError where a number needs more than 64 bits, for a division by zero, and where `exact_div`
  // leaves a remainder.
  int64_t evaluate(const SizeOf& size_of) const;
  // Calls `visit` with each size that the formula reads.
  void for_each_size(const std::function<void(const LazyTensor&, size_t axis)>& visit) const;

  // By structure: equal formulas of equal tensors.
  Hash hash() const;
  bool operator==(const SizeFormula& other) const { return hash() == other.hash(); }

 private:
  struct Part;
  explicit SizeFormula(std::shared_ptr<const Part> part) : part_(std::move(part)) {}
  std::shared_ptr<const Part> part_;
};

// The size of an axis of a tensor: `SizeFormula::size`.
SizeFormula size_of(const LazyTensor& tensor, size_t axis);
// Functions of two formulas, rounded as said above.
SizeFormula operator+(SizeFormula left, SizeFormula right);
SizeFormula operator-(SizeFormula left, SizeFormula right);  // the same
SizeFormula operator*(SizeFormula left, SizeFormula right);  // the same
SizeFormula div(SizeFormula left, SizeFormula right);        // the same
SizeFormula ceil_div(SizeFormula left, SizeFormula right);   // the same
SizeFormula exact_div(SizeFormula left, SizeFormula right);  // the same
SizeFormula mod(SizeFormula left, SizeFormula right);        // the same
SizeFormula min(SizeFormula left, SizeFormula right);        // the same
SizeFormula max(SizeFormula left, SizeFormula right);        // the same

// The formula of one integer of a node.
struct IntegerFormula {
  // What the integer belongs to. Sizes of an output have formulas only where no row infers them.
  enum class Of : uint8_t { attribute, execution, output };
  Of of = Of::attribute;
  size_t number = 0;         // index into the attributes, execution attributes or outputs
  size_t position = 0;       // among `integers_of` the attribute; for an output: the axis
  SizeFormula formula = {};  // gives the integer
  bool operator==(const IntegerFormula&) const = default;
};
// Of one node.
using NodeFormulas = std::vector<IntegerFormula>;
// By node of a graph, nodes of regions included. Formulas read values of the graph or region that
// the node is in, made before it.
using Formulas = FlatMap<const Node*, NodeFormulas>;

// As above, with as few parentheses as the grammar needs.
std::string print(const SizeFormula& formula, const Names& names);

// Reads the formula that comes next. `find` gives the tensor of a name (without "%"); absent: the
// name is not known. UserError with the place in the text.
SizeFormula read_formula(Lexer& lexer, const std::function<LazyTensor(std::string_view)>& find);
// True where a formula that is no plain integer may begin.
bool at_formula(const Lexer& lexer);

}  // namespace composit
