#include "composit/ad/scalar_vjp.h"

#include <algorithm>

#include "composit/ad/expr_derivative.h"
#include "composit/ir/flat_map.h"

namespace composit {
namespace {

using Exprs = std::vector<Expr>;

// Splits results at the decisions they begin with, and goes back through what is left of each.
class Backward {
 public:
  Backward(size_t parameters, Exprs cotangents)
      : parameters_(parameters), cotangents_(std::move(cotangents)) {}

  // A gradient per parameter; absent: zero.
  Exprs of(const Exprs& results) {
    Hasher hasher;
    for (const Expr& result : results) hasher.add(result.hash());
    const Hash key = hasher.finish();
    if (const Exprs* known = known_.find(key)) return *known;
    const auto decided = std::find_if(results.begin(), results.end(),
                                      [](const Expr& x) { return x.is(Function::select); });
    Exprs gradients =
        decided == results.end() ? of_path(results) : of_branches((*decided)[0], results);
    known_.insert(key, gradients);
    return gradients;
  }

 private:
  Exprs of_branches(const Expr& condition, const Exprs& results) {
    Exprs if_true = results, if_false = results;
    for (size_t i = 0; i < results.size(); ++i) {
      const Expr& result = results[i];
      if (!result.is(Function::select) || !result[0].same(condition)) continue;
      if_true[i] = result[1];
      if_false[i] = result[2];
    }
    Exprs gradients = of(if_true);
    const Exprs others = of(if_false);
    for (size_t i = 0; i < parameters_; ++i) {
      if (!gradients[i].defined() && !others[i].defined()) continue;
      gradients[i] = select(condition, gradients[i].defined() ? gradients[i] : Expr(0),
                            others[i].defined() ? others[i] : Expr(0));
    }
    return gradients;
  }

  // To one parameter forwards, which has the cotangent as one factor; to several backwards, in one
  // pass.
  Exprs of_path(const Exprs& results) const {
    return parameters_ == 1 ? Exprs{forwards(results)} : backwards(results);
  }
  Expr forwards(const Exprs& results) const {
    Expr gradient;
    for (size_t i = 0; i < results.size(); ++i) {
      const Expr parameter = Expr::parameter(0, cotangents_[i].dtype());
      const Expr term = structural(results[i], parameter, cotangents_[i]);
      if (term.defined()) gradient = gradient.defined() ? gradient + term : term;
    }
    return gradient;
  }
  // Through the sum of the results times their cotangents.
  Exprs backwards(const Exprs& results) const {
    Expr value = results[0], cotangent = cotangents_[0];
    if (results.size() > 1) {
      value = value * cotangent;
      for (size_t i = 1; i < results.size(); ++i) value = value + results[i] * cotangents_[i];
      cotangent = cast(1, cotangent.dtype());
    }
    const auto is_parameter = [&](const Expr& leaf) { return leaf.number() < parameters_; };
    Exprs gradients(parameters_);
    for (const LeafGradient& found : reverse(value, cotangent, is_parameter))
      gradients[found.leaf.number()] =
          found.condition.defined() ? select(found.condition, found.gradient, 0) : found.gradient;
    return gradients;
  }

  size_t parameters_;
  Exprs cotangents_;
  FlatMap<Hash, Exprs> known_;
};

}  // namespace

ScalarProgram vjp(const ScalarProgram& program) {
  ScalarProgram back{program.parameters + program.results.size(), program.dtype, {}};
  if (program.results.empty()) {
    back.results.assign(program.parameters, Expr::literal(0.0, program.dtype));
    return back;
  }
  Exprs cotangents;
  for (size_t i = program.parameters; i < back.parameters; ++i)
    cotangents.push_back(back.parameter(i));
  for (const Expr& gradient : Backward(program.parameters, cotangents).of(program.results))
    back.results.push_back(gradient.defined() ? cast(gradient, program.dtype)
                                              : Expr::literal(0.0, program.dtype));
  return back;
}

}  // namespace composit
