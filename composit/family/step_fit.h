// Finds the step function over one size that gives a list of integers: what remains of a size after
// windows and strides, each of which rounds.
//
//   const SizeFormula tokens = *step_fit({3, 3, 4}, {40, 44, 45}, axis, {}, more);   // div(axis -
//   25, 5)
//
// A chain of such roundings is one: div(div(x - 5, 5) - 3, 4) == div(x - 20, 20).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "composit/family/family.h"
#include "composit/ir/size_formula.h"

namespace composit {

// The number at a size of the range; nothing: there is none.
using StepAt = std::function<std::optional<int64_t>(int64_t size)>;

// `div(size + c, d)` that is `values` at `sizes`, by `size`. Where several are, `at` is asked at
// one of `range` at which they differ. Nothing where there is none, or where they cannot be told
// apart.
std::optional<SizeFormula> step_fit(const std::vector<int64_t>& values,
                                    const std::vector<int64_t>& sizes, const SizeFormula& size,
                                    const std::vector<int64_t>& range, const StepAt& at);

// A size of the inputs that a number may follow from.
struct StepAxis {
  std::string name;  // by which points have it
  SizeFormula size;
  std::vector<int64_t> range;  // all that it may be, ascending
  std::vector<int64_t> shown;  // by value
  // The number where this size is another one than at a point.
  std::function<std::optional<int64_t>(const SizeValues& point, int64_t size)> at;
  int64_t of(const SizeValues& point) const { return point.at(name); }
};

// The same by one of the axes, or as a product of two, each rounded by itself; the others make no
// difference. `points`: where numbers are asked for.
std::optional<SizeFormula> step_fit(const std::vector<int64_t>& values,
                                    const std::vector<StepAxis>& axes,
                                    const std::vector<SizeValues>& points);

}  // namespace composit
