#include "flashlight/loops/renumber.h"

#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

Statement renumbered_statement(Statement statement, const std::map<size_t, size_t>& numbers) {
  for (composit::Store& store : statement.stores) store.result = numbers.at(store.result);
  return replaced(std::move(statement), [&](const Expr& part) {
    if (part.kind() != ExprKind::load) return Expr();
    return Expr::load(numbers.at(part.number()), part.dtype(), part.arguments());
  });
}

}  // namespace

Step renumbered(Step step, const std::map<size_t, size_t>& numbers) {
  const auto change = [&](std::vector<size_t>& values) {
    for (size_t& value : values) value = numbers.at(value);
  };
  if (auto* nest = std::get_if<Nest>(&step)) {
    nest->statement = renumbered_statement(std::move(nest->statement), numbers);
  } else if (auto* call = std::get_if<Invocation>(&step)) {
    change(call->arguments);
    change(call->results);
  } else if (auto* runtime = std::get_if<RuntimeCall>(&step)) {
    change(runtime->arguments);
    change(runtime->results);
  } else {
    auto& control = std::get<Control>(step);
    for (auto* list :
         {&control.carried, &control.sequences, &control.outside, &control.results, &control.next})
      change(*list);
    if (control.predicate) control.predicate = numbers.at(*control.predicate);
    if (control.trips) control.trips = numbers.at(*control.trips);
  }
  return step;
}

}  // namespace flashlight::loops
