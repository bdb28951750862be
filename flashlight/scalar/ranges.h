// Derives comparisons from others that were decided before:
//
//   Ranges ranges;
//   ranges.learn(x > 3, true);
//   ranges.implied(x > 2) == true;      // and x < 1 is false
//
// A chain of comparisons of one value (the steps of a staircase) then has a path per step, not one
// per subset of the steps. The value may be NaN: that x > 3 is false does not make x <= 3 true.
#pragma once

#include <limits>
#include <optional>

#include "composit/ir/flat_map.h"
#include "composit/op/expr.h"

namespace flashlight {

class Ranges {
 public:
  // True or false if that follows from the comparisons that were learned; else nothing.
  std::optional<bool> implied(const composit::Expr& condition) const;
  void learn(const composit::Expr& condition, bool holds);

 private:
  struct Range {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool low_open = false, high_open = false;
    bool operator==(const Range&) const = default;
  };
  struct Known {
    Range range;          // of the value, unless it is NaN
    bool number = false;  // the value is not NaN
  };
  // `value` is in `range`, as a condition.
  struct Comparison {
    composit::Expr value;
    Range range;
  };
  static std::optional<Comparison> comparison_of(const composit::Expr& condition);
  static Range common(const Range& a, const Range& b);
  static bool is_empty(const Range& range);

  composit::FlatMap<composit::Hash, Known> known_;  // by the value's hash
};

}  // namespace flashlight
