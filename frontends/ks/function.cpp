#include "frontends/ks/function.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/passes/inline_calls.h"
#include "frontends/ks/graph.h"
#include "frontends/ks/interpreter.h"
#include "frontends/ks/parse.h"

namespace flashlight::ks {

using composit::LazyTensor;
using composit::LazyTensors;

ProgramFunction::ProgramFunction(Program program, const std::string& function)
    : program_(std::make_shared<const Program>(std::move(program))), name_(function) {
  Signature signature = signature_of(*program_, function);
  parameters_ = std::move(signature.parameters);
  result_ = std::move(signature.result);
}

LazyTensors ProgramFunction::operator()(const std::vector<Argument>& arguments) const {
  std::vector<ArgumentLeaf> leaves;
  LazyTensors tensors;
  GraphOptions options;
  for (const Argument& one : arguments) {
    if (const auto* tensor = std::get_if<LazyTensor>(&one)) {
      if (!tensor->defined()) throw composit::UserError("[ks] '" + name_ + "' received no tensor");
      tensors.push_back(*tensor);
      leaves.emplace_back(composit::tensor_type(tensor->dtype(), tensor->sizes()));
      if (tensor->dtype() == composit::DType::float64) options.floating = composit::DType::float64;
    } else if (const auto* integer = std::get_if<int64_t>(&one)) {
      leaves.emplace_back(*integer);
    } else {
      leaves.emplace_back(std::get<bool>(one));
    }
  }
  const composit::Graph graph = graph_of(*program_, name_, leaves, options);
  return composit::call_as_node("ks." + name_, graph, tensors);
}

Number ProgramFunction::only(const Numbers& results) const {
  if (results.size() != 1)
    throw composit::UserError("[ks] '" + name_ + "' has " + std::to_string(results.size()) +
                              " results; expected one");
  return results[0];
}

namespace {

// The value of this type whose Floats are the numbers from `next` on.
Value value_of(const Type& type, const std::vector<Expr>& numbers, size_t& next,
               const std::string& function) {
  if (type.kind == Type::Kind::tuple) {
    Values items;
    for (const Type& part : type.parts) items.push_back(value_of(part, numbers, next, function));
    return tuple_of(std::move(items));
  }
  if (type.kind != Type::Kind::floating)
    throw composit::UserError("[ks] '" + function + "' is no function of Floats alone: it has a " +
                              print(type));
  if (next == numbers.size())
    throw composit::UserError("[ks] '" + function + "' expects more numbers than " +
                              std::to_string(numbers.size()));
  return {numbers[next++]};
}

void add_numbers(const Value& value, const std::string& function, Numbers& numbers) {
  if (value.is_tuple()) {
    for (const Value& item : value.items()) add_numbers(item, function, numbers);
  } else if (value.is_number() && value.number().dtype() == composit::DType::float64) {
    numbers.emplace_back(value.number());
  } else {
    throw composit::UserError("[ks] the result of '" + function + "' is not of Floats alone");
  }
}

}  // namespace

Numbers ProgramFunction::numbers(const Numbers& x) const {
  std::vector<Expr> exprs;
  for (const Number& one : x) exprs.push_back(one.expr());
  Interpreter interpreter(*program_, Tape::of_numbers(exprs));
  Values items;
  size_t next = 0;
  for (const Parameter& one : parameters_) items.push_back(value_of(one.type, exprs, next, name_));
  if (next != x.size())
    throw composit::UserError("[ks] '" + name_ + "' expects " + std::to_string(next) +
                              " numbers, received " + std::to_string(x.size()));
  const Value argument = items.size() == 1 ? items[0] : tuple_of(std::move(items));
  Numbers results;
  add_numbers(interpreter.call(parse_name(name_), argument, {1, 1}), name_, results);
  return results;
}

}  // namespace flashlight::ks
