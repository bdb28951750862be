// Sizes of a family as torch.export's symbols: what each size of each value is in terms of the
// sizes that a caller chooses.
//
//   Symbols symbols(family);
//   symbols.size_json(x, 0);      // {"as_expr": {"expr_str": "Symbol('s0', …)", "hint": …}}
//
// The types of values are worked out at several sizes, and expressions fitted; they are the types
// that torch shows. What a program computes of sizes is in its nodes, as the family's formulas say
// it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "composit/family/bind.h"
#include "composit/family/family.h"
#include "composit/family/fit.h"
#include "composit/interchange/pt2/format.h"

namespace composit::pt2 {

class Symbols {
 public:
  // The family has to outlive the symbols. `points`: sizes at which types are worked out, where the
  // family does not hold at all sizes within its ranges; none: at some of those. `first`: the
  // number of its first symbol that is no free size, in a program of several families.
  explicit Symbols(const Family& family, const std::vector<SizeValues>& points = {},
                   size_t first = 0);

  const Family& family() const { return family_; }
  // The type of a value of the example, with its sizes as expressions.
  Json tensor_meta(const Node* node, uint32_t output, bool requires_grad) const;
  // False where a size of a value of the example is another at other sizes.
  bool has_one_size(const Node& node, uint32_t output, size_t axis) const;
  // A size of a value: an integer, or an expression with its number in the example.
  Json size_json(const LazyTensor& value, size_t axis) const;
  // Of what no formula of the free sizes is known for, torch gets a symbol of its own.
  Json unknown(int64_t here) const;
  // {"s0": {"min_val", "max_val"}}: of free sizes "s0", …; of sizes that depend on values "u0", ….
  Json range_constraints() const;

 private:
  using Series = std::vector<int64_t>;  // a number at each of the sizes that were tried
  void add(const SizeValues& sizes, const std::vector<int64_t>& value_sizes,
           const Binding& binding);
  std::string leaf_text(size_t leaf) const;
  std::string unknown_text(size_t number) const;
  // The integer that is a series, as JSON.
  Json integer(const Series& series) const;

  const Family& family_;
  std::map<std::pair<const Node*, uint32_t>, std::vector<Type>> types_;  // at the sizes tried
  std::vector<SizeLeaf> leaves_;  // free sizes, then those that depend on values
  mutable std::map<Series, Json> known_;
  const size_t first_;
  mutable size_t unknown_ = 0;
};

// sympy's text of a formula, whose leaves `size` gives.
std::string expression(const SizeFormula& formula,
                       const std::function<std::string(const LazyTensor&, size_t axis)>& size);

}  // namespace composit::pt2
