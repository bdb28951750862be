// A function of numbers as expressions: what flashlight::scalar traces, and what `elementwise`
// applies to tensors.
//
//   ScalarProgram relu{1, DType::float64, {select(x < 0, 0, x)}};     // x = Expr::parameter(0, …)
//   evaluate(relu, {-2})[0] == 0;
//   print(relu);                                    // "(p0: float64) -> (p0 < 0 ? 0 : p0)"
//
// Its parameters are leaves of kind `parameter`, numbered from 0; what is decided by a value is a
// `select`, which evaluates only the branch it takes.
#pragma once

#include <string>
#include <vector>

#include "composit/op/expr.h"

namespace composit {

struct ScalarProgram {
  size_t parameters = 0;           // number of parameters
  DType dtype = DType::float64;    // dtype of all parameters; a floating point dtype
  std::vector<Expr> results = {};  // expressions of the parameters

  // Parameter `number`, in the program's dtype.
  Expr parameter(size_t number) const { return Expr::parameter(number, dtype); }
};

// The program computed in another floating point dtype; its literals are rounded to it.
ScalarProgram with_dtype(const ScalarProgram& program, DType dtype);

// The results for values of the parameters, in the arithmetic of the program's dtype. UserError for
// another number of values, and for an integer division by zero.
std::vector<double> evaluate(const ScalarProgram& program, const std::vector<double>& values);

// Parts that are used more than once stand on lines of their own before the results.
std::string print(const ScalarProgram& program);

}  // namespace composit
