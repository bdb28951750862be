// Questions about one statement of loops.
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
bool is_axis(const Expr& x, AxisId axis);          // itself
size_t parallel_axes(const Statement& statement);  // they come first
bool has_axes(const Statement& statement, composit::AxisKind kind);

// One accumulator of float or double, or with `halves` of 16-bit floats, that adds up `body`, from
// 0.
bool is_sum(const Statement& statement, bool halves = false);
// The function that the only accumulator is combined with: add, mul, max or min of left and right.
std::optional<composit::Function> fold_function(const Statement& statement);

// Whether it throws for some data: elements of what it reads are indices, or divide integers.
bool may_refuse(const Statement& statement);

// Every element of one value is computed, each by itself: no accumulator, no domain, one store.
bool is_elementwise(const Statement& statement);
// For a store to a permutation of axes: per dimension, the axis. Nothing for any other store.
std::optional<AxisIds> axes_of_dimensions(const std::vector<composit::Expr>& at);

// Points of the axes, of all or of these.
int64_t iterations(const Statement& statement);
int64_t iterations(const Statement& statement, const AxisIds& axes);

// Operations on elements, those in indices left out; `expensive` where one is worth a loop of its
// own: exp, division, and what is slower.
struct Cost {
  int64_t operations = 0;
  bool expensive = false;
};
Cost cost_of(const Expr& value);

// `change` applied to all expressions: see composit::replace.
Statement replaced(Statement statement, const composit::ReplaceExpr& change);
// Index expressions in their common form; axes keep their numbers.
Statement with_simple_indices(Statement statement);
// Accumulators that no store needs are left out.
Statement without_unused_accumulators(Statement statement);
// Indices in their common form, axes of extent 1 left out.
Statement simplified(Statement statement);

}  // namespace flashlight::loops
