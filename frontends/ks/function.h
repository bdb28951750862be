// Functions of a program as operations of graphs, and of numbers.
//
//   const Program program = parse(text, "gmm.ks");
//   const ProgramFunction gmm(program, "gmm");
//   LazyTensors value = gmm({alphas, means, icf, x, gamma, 2});     // one node, with a derivative
//
//   const ProgramFunction relu3(program, "relu3");
//   auto f = flashlight::scalar([&](auto x) { return relu3.number(x) * 2.0; });
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "composit/ir/node.h"
#include "flashlight/scalar/number.h"
#include "frontends/ks/syntax.h"

namespace flashlight::ks {

// A number of an argument at all indices of the tensors that it is in, or the lengths of a ragged
// tensor, as in graph_of; or an Integer or Bool that is known, as sizes are.
using Argument = std::variant<composit::LazyTensor, int64_t, bool>;

// A function of a program; copies share the program.
class ProgramFunction {
 public:
  // `function`: as in graph_of. UserError where the program has none of that name.
  ProgramFunction(Program program, const std::string& function);

  const std::string& name() const { return name_; }                         // "[rev gmm]"
  const std::vector<Parameter>& parameters() const { return parameters_; }  // of the program
  const Type& result() const { return result_; }                            // type of the result

  // The numbers of the result for those of the argument, in order, as one node `composit::call`.
  // Float is float64 if one of the tensors is; then all are. UserError as of graph_of.
  composit::LazyTensors operator()(const std::vector<Argument>& arguments) const;

  // A function of Floats (in tuples, or as several parameters), as expressions of these numbers:
  // sums and folds are unrolled, branches selected. UserError for other parameters or results.
  Numbers numbers(const Numbers& x) const;
  // The same, for a function with one result.
  Number number(const Number& x) const { return only(numbers({x})); }

 private:
  Number only(const Numbers& results) const;
  std::shared_ptr<const Program> program_;
  std::string name_;
  std::vector<Parameter> parameters_;
  Type result_;
};

}  // namespace flashlight::ks
