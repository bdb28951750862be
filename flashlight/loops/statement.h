// Queries and rewrites of one statement of loops.
#pragma once

#include <optional>
#include <vector>

#include "composit/op/affine.h"
#include "composit/op/scalar_function.h"
#include "flashlight/loops/program.h"

namespace flashlight::loops {

inline IdRange<AxisId, std::vector<composit::Axis>> axes_of(const Statement& statement) {
  return IdRange<AxisId, std::vector<composit::Axis>>(statement.axes);
}
void axes_of(Statement&&) = delete;
// Axes that occur in `x`, ascending.
AxisIds axes_in(const Expr& x);
AxisIds axes_in(const composit::Affine& x);
bool is_axis(const Expr& x, AxisId axis);          // x is this axis and no more
size_t parallel_axes(const Statement& statement);  // they come first
bool has_axes(const Statement& statement, composit::AxisKind kind);

// True for a sum of `body` from 0 in one accumulator of float or double, with `halves` also of
// 16-bit floats.
bool is_sum(const Statement& statement, bool halves = false);
// The function (add, mul, max or min) that combines the only accumulator; else nothing.
std::optional<composit::Function> fold_function(const Statement& statement);

// True if it throws for some data: it indexes by loaded elements, or divides integers by data.
bool may_refuse(const Statement& statement);
bool divides_by_data(const Statement& statement);  // integers

// True if every element of one value is computed by itself: no accumulator, no domain, one store.
bool is_elementwise(const Statement& statement);
// 0 to each element of `value`, which is of `type`.
Statement zeros(const composit::Type& type, ValueId value);
// For a store to a permutation of axes: per dimension, the axis. Nothing for any other store.
std::optional<AxisIds> axes_of_dimensions(const std::vector<composit::Expr>& at);

// The number of points of all axes, or of these.
int64_t iterations(const Statement& statement);
int64_t iterations(const Statement& statement, const AxisIds& axes);

// Operations on elements, without those in indices. `expensive` if one is a division, exp, or
// slower: a value that takes it is worth a loop of its own.
struct Cost {
  int64_t operations = 0;
  bool expensive = false;
};
Cost cost_of(const Expr& value);

// Applies `change` to all expressions: see composit::replace.
Statement replaced(Statement statement, const composit::ReplaceExpr& change);
// Brings index expressions to their common form; axes keep their numbers.
Statement with_simple_indices(Statement statement);
// Drops accumulators that no store needs.
Statement without_unused_accumulators(Statement statement);
// Brings indices to their common form, and drops axes of extent 1.
Statement simplified(Statement statement);

}  // namespace flashlight::loops
