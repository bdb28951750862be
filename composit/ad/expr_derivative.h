// Derivatives of scalar expressions. Each function's partial derivatives are one row of a table.
//
//   Expr x = Expr::load(0, DType::float64, {i}), g = Expr::load(1, DType::float64, {i});
//   structural(select(x < 0, 0, x * x), x, g);     // x < 0 ? 0 : g * (x + x)
//   reached(select(0 <= i, x, 0), x);              // 0 <= i: elsewhere x is not evaluated
//
// Conventions
//   * A leaf is any part of kind load, accumulator, left, right or parameter. The same leaf is the
//     same expression: x[i] and x[i + 1] are two.
//   * Complex numbers follow torch: what flows back to z is dL/d re(z) + i dL/d im(z), so that for
//     a holomorphic f it is cotangent * conj(f'(z)).
//   * Steps (floor, sign, comparisons), integers and bool have derivative zero. Where a function
//     has a kink the value is torch's: abs'(0) = 0, min and max share equally between equals.
//   * What the derivative evaluates is what the expression evaluates: nothing of a branch that
//     `select` does not take, which may load out of range.
//   * Zero is an absent expression. Where a derivative is a product, a factor that a select makes
//     zero makes the product zero, be the others infinite or NaN.
//   * UserError for a function that has no derivative we know, where the leaf reaches it:
//     "[nextafter] has no derivative with respect to its first argument".
#pragma once

#include <functional>
#include <vector>

#include "composit/op/expr.h"

namespace composit {

// True if tensors of `dtype` carry gradients.
bool is_differentiable(DType dtype);

// The cotangent of `leaf`, given the cotangent of `value`. Selects on the way stay selects: d(c ? a
// : b) = c ? a' : b'. The result is defined wherever `value` is. It is absent if no gradient ever
// reaches `leaf`.
Expr structural(const Expr& value, const Expr& leaf, const Expr& cotangent);

// The cotangents of all leaves that `wanted` accepts, computed in one pass, in the order of
// parts_of.
struct LeafGradient {
  Expr leaf;
  Expr condition;  // of selects on the way; absent: always. The gradient is zero elsewhere, and
                   // may be evaluated only here.
  Expr gradient;
};
std::vector<LeafGradient> reverse(const Expr& value, const Expr& cotangent,
                                  const std::function<bool(const Expr&)>& wanted);

// The condition under which evaluating `value` evaluates `leaf`: the literal true for always,
// absent for never.
Expr reached(const Expr& value, const Expr& leaf);

}  // namespace composit
