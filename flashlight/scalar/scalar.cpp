#include "flashlight/scalar/scalar.h"

#include "composit/ad/scalar_vjp.h"
#include "composit/ir/error.h"
#include "composit/ops/elementwise.h"

namespace flashlight {

using composit::UserError;

ScalarFunction::ScalarFunction(composit::ScalarProgram program) : program_(std::move(program)) {}

static void expect_one(size_t results) {
  if (results != 1)
    throw UserError("[scalar] expected a function with one result, received one with " +
                    std::to_string(results));
}

const composit::Expr& ScalarFunction::expr() const {
  expect_one(exprs().size());
  return exprs()[0];
}

double ScalarFunction::only(const std::vector<double>& results) const {
  expect_one(results.size());
  return results[0];
}

std::vector<double> ScalarFunction::values(const std::vector<double>& x) const {
  return evaluate(program_, x);
}

ScalarFunction ScalarFunction::vjp() const { return ScalarFunction(composit::vjp(program_)); }

std::vector<double> ScalarFunction::vjp(const std::vector<double>& x,
                                        const std::vector<double>& cotangents) const {
  std::vector<double> all = x;
  all.insert(all.end(), cotangents.begin(), cotangents.end());
  if (cotangents.size() != exprs().size())
    throw UserError("[scalar] expected " + std::to_string(exprs().size()) +
                    " cotangents, received " + std::to_string(cotangents.size()));
  return vjp().values(all);
}

composit::LazyTensors ScalarFunction::tensors(const composit::LazyTensors& x) const {
  return composit::elementwise(program_, x);
}

}  // namespace flashlight
