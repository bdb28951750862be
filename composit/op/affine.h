// Analyses integer expressions over the axes of a statement: tells whether they are affine, which
// values they can take, and whether a predicate holds everywhere.
//
//   IndexAnalysis analysis({{"g", 4}, {"c", 8}});
//   analysis.affine(g * 8 + c);                      // coefficients {8, 1}, constant 0
//   analysis.affine(floor_divide(g * 8 + c, 8));     // {1, 0}: c < 8
//   analysis.range(g * 8 + c);                       // 0 … 31
//   analysis.simplify(g * 8 + c < 32);               // true
//
// Axes of extent 1 count as 0.
#pragma once

#include <optional>
#include <vector>

#include "composit/ir/flat_map.h"
#include "composit/op/loops.h"

namespace composit {

// constant + sum of coefficients[i] * axis i; numbers are below 2^62.
struct Affine {
  std::vector<int64_t> coefficients;
  int64_t constant = 0;

  bool operator==(const Affine&) const = default;
  std::vector<size_t> axes() const;  // those with a coefficient
  // *this + factor * other; nothing where a number would be too large.
  std::optional<Affine> plus(const Affine& other, int64_t factor = 1) const;
};

// The form all equal affine expressions get: "y0 - k0 + 1".
Expr to_expr(const Affine& x);

// low <= value <= high; a bound of kUnbounded is none.
struct Range {
  static constexpr int64_t kUnbounded = int64_t{1} << 62;
  int64_t low = -kUnbounded;
  int64_t high = kUnbounded;
  bool operator==(const Range&) const = default;
  bool inside(int64_t first, int64_t last) const { return first <= low && high <= last; }
};

// a / b, rounded towards minus infinity.
int64_t floor_div(int64_t a, int64_t b);
// A call of lt, le, gt, ge, eq or ne.
bool is_comparison(const Expr& x);

class IndexAnalysis {
 public:
  explicit IndexAnalysis(const std::vector<Axis>& axes);

  std::optional<Affine> affine(const Expr& x);
  Range range(const Expr& x);
  Range range(const Affine& x) const;
  // Affine parts in their common form; comparisons, and selects on them, that ranges decide.
  Expr simplify(const Expr& x);
  std::vector<Expr> simplify(const std::vector<Expr>& roots);

  size_t axes() const { return extents_.size(); }
  int64_t extent(size_t axis) const { return extents_[axis]; }

 private:
  struct Known {
    std::optional<Affine> affine;
    Range range;
  };
  const Known& known(const Expr& x);
  Known analyse(const Expr& part);
  std::optional<Affine> affine_call(const Expr& call);
  std::optional<Affine> divided(const Expr& call);
  Range range_of_call(const Expr& call);
  Expr decided(const Expr& part);
  std::optional<bool> compare(const Expr& comparison);

  std::vector<int64_t> extents_;
  FlatMap<Hash, Known> known_;
};

// Predicates.

// The predicates that `domain` (absent: none) holds together.
std::vector<Expr> conjuncts(const Expr& domain);
// All of them; absent where there is none. Predicates that load are evaluated only where those
// before them, and all that do not load, hold.
Expr all_of(std::vector<Expr> predicates);
// The predicates of `domain` that are not in `dropped`.
Expr without_conjuncts(const Expr& domain, const Expr& dropped);
bool is_true(const Expr& x);
bool is_false(const Expr& x);
bool has_loads(const Expr& x);
Expr negation(const Expr& predicate);
// `x` where `condition` holds, false elsewhere; `x` is evaluated only there if it loads.
Expr and_then(const Expr& condition, const Expr& x);
// Either; `x` is evaluated only where `condition` does not hold if it loads.
Expr or_else(const Expr& condition, const Expr& x);
// The x of a predicate that says x >= 0, if it is a comparison of affine expressions.
std::optional<Affine> bound_of(const Expr& predicate, IndexAnalysis& analysis);
// `domain` without the predicates that ranges prove. Absent if all of them are proved; the literal
// false if the domain is empty.
Expr simplify_domain(const Expr& domain, IndexAnalysis& analysis);
Expr simplify_domain(const Expr& domain, const std::vector<Axis>& axes);
// `x` where `domain` holds: its predicates are true.
Expr assume(const Expr& x, const Expr& domain);

}  // namespace composit
