#include "composit/ad/scalar_vjp.h"

#include "composit/ad/expr_derivative.h"

namespace composit {

ScalarProgram vjp(const ScalarProgram& program) {
  ScalarProgram back{program.parameters + program.results.size(), program.dtype, {}};
  for (size_t i = 0; i < program.parameters; ++i) {
    Expr gradient;
    for (size_t k = 0; k < program.results.size(); ++k) {
      const Expr cotangent = back.parameter(program.parameters + k);
      const Expr term = structural(program.results[k], program.parameter(i), cotangent);
      if (!gradient.defined())
        gradient = term;
      else if (term.defined())
        gradient = gradient + term;
    }
    back.results.push_back(gradient.defined() ? cast(gradient, program.dtype)
                                              : Expr::literal(0.0, program.dtype));
  }
  return back;
}

}  // namespace composit
