#include "flashlight/loops/renumber.h"

#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

Statement renumbered_statement(Statement statement, const std::map<ValueId, ValueId>& numbers) {
  for (composit::Store& store : statement.stores) store.result = numbers.at(value_of(store));
  return replaced(std::move(statement), [&](const Expr& part) {
    if (part.kind() != ExprKind::load) return Expr();
    return Expr::load(numbers.at(value_of(part)), part.dtype(), part.arguments());
  });
}

}  // namespace

Step renumbered(Step step, const std::map<ValueId, ValueId>& numbers) {
  const auto change = [&](ValueIds& values) {
    for (ValueId& value : values) value = numbers.at(value);
  };
  if (auto* nest = std::get_if<Nest>(&step)) {
    nest->statement = renumbered_statement(std::move(nest->statement), numbers);
    nest->recognised = nullptr;
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
