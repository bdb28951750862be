// Conditions on sizes: which of two structures a program has.
//
//   SizeCondition padded{mod(size_of(x, 1), 8), SizeCondition::Relation::equal, 0};
//   print(padded, Names(graph));                 // "mod(size(%x, 1), 8) == 0"
//   bool is_padded = holds(padded, size_at);
#pragma once

#include <string>
#include <vector>

#include "composit/family/fit.h"
#include "composit/ir/size_formula.h"

namespace composit {

// `left == right`, or `left <= right`.
struct SizeCondition {
  // How the two sides compare.
  enum class Relation : uint8_t { equal, at_most };
  SizeFormula left;                     // one side
  Relation relation = Relation::equal;  // what is said of the two
  SizeFormula right;                    // the other side
  bool operator==(const SizeCondition&) const = default;
};

// Whether a condition holds for these sizes.
bool holds(const SizeCondition& condition, const SizeFormula::SizeOf& size_of);
// "size(%x, 0) <= 8"
std::string print(const SizeCondition& condition, const Names& names);
// The inverse of `print`: see `read_formula`.
SizeCondition read_condition(Lexer& lexer, const std::function<LazyTensor(std::string_view)>& find);
// Calls `visit` with each size that the condition reads.
void for_each_size(const SizeCondition& condition,
                   const std::function<void(const LazyTensor&, size_t axis)>& visit);

// A condition that tells some examples from the others.
struct Separation {
  SizeCondition condition;   // of one side
  bool holds_inside = true;  // for the examples `inside`; false: for the others
};

// Conditions that tell the examples `inside` from the others, the simplest first: a size that is
// equal to a number, that a number divides (or leaves a remainder), that is equal to another size,
// that is at most a number or another size; of two sizes either may have a factor. Of leaves that
// are not near, which hold for values before, divisors and limits only. Of limits that fit just as
// well, the least, the greatest and one between.
std::vector<Separation> separations(const std::vector<SizeLeaf>& leaves,
                                    const std::vector<bool>& inside);

}  // namespace composit
