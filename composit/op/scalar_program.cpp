#include "composit/op/scalar_program.h"

#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/op/expr_print.h"
#include "composit/op/loops.h"

namespace composit {
namespace {

// The value of each part that is asked for, as a literal. Not recursive.
class Evaluation {
 public:
  explicit Evaluation(const std::vector<Expr>& parameters) : parameters_(parameters) {}

  double of(const Expr& root) {
    stack_ = {root};
    while (!stack_.empty()) {
      const Expr part = stack_.back();
      if (!known_.contains(part.hash()) && !compute(part)) continue;  // its arguments first
      stack_.pop_back();
    }
    return std::get<double>(cast(value(root), DType::float64).value());
  }

 private:
  const Expr& value(const Expr& part) const { return *known_.find(part.hash()); }
  bool has(const Expr& part) {
    if (known_.contains(part.hash())) return true;
    stack_.push_back(part);
    return false;
  }

  bool compute(const Expr& part) {
    if (part.is(Function::select)) return compute_select(part);
    bool ready = true;
    for (const Expr& argument : part.arguments()) ready = has(argument) && ready;
    if (!ready) return false;
    known_.insert(part.hash(), computed(part));
    return true;
  }
  bool compute_select(const Expr& part) {
    if (!has(part[0])) return false;
    const Expr& taken = part[std::get<bool>(value(part[0]).value()) ? 1 : 2];
    if (!has(taken)) return false;
    known_.insert(part.hash(), Expr(value(taken)));
    return true;
  }
  Expr computed(const Expr& part) const {
    if (part.kind() == ExprKind::parameter) return parameters_.at(part.number());
    std::vector<Expr> arguments;
    for (const Expr& argument : part.arguments()) arguments.push_back(value(argument));
    const Expr result = part.with_arguments(std::move(arguments));  // functions of literals fold
    if (result.kind() != ExprKind::literal)
      throw UserError("[scalar] cannot evaluate " + print(result));
    return result;
  }

  const std::vector<Expr>& parameters_;
  std::vector<Expr> stack_;
  FlatMap<Hash, Expr> known_;
};

}  // namespace

ScalarProgram with_dtype(const ScalarProgram& program, DType dtype) {
  if (program.dtype == dtype) return program;
  const auto converted = [&](const Expr& part) {
    if (part.dtype() != program.dtype) return Expr();
    if (part.kind() == ExprKind::parameter) return Expr::parameter(part.number(), dtype);
    return part.kind() == ExprKind::literal ? cast(part, dtype) : Expr();
  };
  return {program.parameters, dtype, replace(program.results, converted)};
}

std::vector<double> evaluate(const ScalarProgram& program, const std::vector<double>& values) {
  if (values.size() != program.parameters)
    throw UserError("[scalar] expected " + std::to_string(program.parameters) +
                    " numbers, received " + std::to_string(values.size()));
  std::vector<Expr> parameters;
  for (double value : values) parameters.push_back(Expr::literal(value, program.dtype));
  Evaluation evaluation(parameters);
  std::vector<double> results;
  for (const Expr& result : program.results) results.push_back(evaluation.of(result));
  return results;
}

std::string print(const ScalarProgram& program) {
  std::string text = "scalar(", returned;
  for (size_t i = 0; i < program.parameters; ++i)
    text += (i == 0 ? "p" : ", p") + std::to_string(i);
  text += ": " + std::string(name(program.dtype)) + ") {";
  const LeafNames names;
  ExprPrinter printer(text, names);
  printer.plan(program.results);
  for (const Expr& result : program.results) printer.locals(result, "\n  ");
  for (const Expr& result : program.results) {
    text += returned.empty() ? "\n  return " : ", ";
    returned = "one";
    printer.write(result);
  }
  return text + "\n}\n";
}

}  // namespace composit
