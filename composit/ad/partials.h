// The table of partial derivatives of every scalar function.
//
//   const Partial partial = partial_of(Function::tanh, 0);
//   partial.d({x, {}, result});                      // 1 - result * result
#pragma once

#include "composit/op/expr.h"

namespace composit {

// One application of a function, for its partial derivatives.
struct Application {
  Expr x, y;  // arguments; y is absent where there is one
  Expr result;
};

// The partial derivative with respect to one argument and, where the function is not holomorphic,
// to the argument's conjugate (Wirtinger's derivatives). Null is zero.
struct Partial {
  using Rule = Expr (*)(const Application&);
  Rule d = nullptr;
  Rule d_conj = nullptr;  // for complex arguments only
  bool known = true;      // false: the function has a derivative, but none we can express
};

// Function::select and Function::cast are not in the table: they say what is computed, not how.
Partial partial_of(Function function, size_t argument);

}  // namespace composit
