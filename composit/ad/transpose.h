// The derivative of a loop form, as a loop form: what flows back to one of its operands.
//
//   // mm: y[i, k] = sum over j of a[i, j] b[j, k]
//   Transposed da = transpose(mm, 0, {true});
//   da.operands == std::vector<size_t>{1, 2};     // b, and the cotangent of y
//   da.loops;                                     // da[i, j] = sum over k of g[i, k] b[j, k]
//
// How: for each load of the operand, at x[f(axes)], the gradient at f(axes) gets the cotangent
// times the derivative of what is stored by what is loaded. `gather` makes it a sum for each place.
//
//   * An accumulator that is a sum passes on its cotangent to all points; a sum along a scan axis
//     becomes a sum from the other end. What is stored may be a nonlinear function of other loads,
//     but its derivative must not need the accumulator.
//   * What a later store overwrites gets nothing.
//   * The result is a loop form like any other, and can be transposed again.
#pragma once

#include <vector>

#include "composit/op/loops.h"

namespace composit {

struct Transposed {
  Loops loops;  // one result, of the operand's type; no statement where it is zero
  // The operands of `loops`, in ascending order, and only those that are read. A forward operand
  // has its number; the cotangent of result i has (number of forward operands) + i.
  std::vector<size_t> operands;
};

// With respect to operand `operand`, given the cotangents of those results that have one (in the
// results' dtypes). Operands that are no floats or complex numbers have zero.
//
// UserError, without the operation's name:
// ```text
//   "loop form is not linear in its accumulator"             max, prod, sqrt(sum): use a vjp rule
//   "loop form may store two values to one place"            `=` with an index that is data
//   "loop form overwrites places that depend on data"
//   and those of expr_derivative.h
// ```
Transposed transpose(const Loops& loops, size_t operand, const std::vector<bool>& has_cotangent);

}  // namespace composit
