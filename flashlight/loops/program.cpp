#include "flashlight/loops/program.h"

#include <algorithm>

#include "composit/ir/print.h"

namespace flashlight::loops {
namespace {

void add(ValueIds& list, ValueId value) {
  if (!contains(list, value)) list.push_back(value);
}

}  // namespace

ValueIds reads(const Step& step) {
  if (const auto* invocation = std::get_if<Invocation>(&step)) return invocation->arguments;
  if (const auto* call = std::get_if<RuntimeCall>(&step)) return call->arguments;
  if (const auto* control = std::get_if<Control>(&step)) {
    ValueIds found;
    for (const auto* list : {&control->carried, &control->sequences, &control->outside})
      for (ValueId value : *list) add(found, value);
    if (control->predicate) add(found, *control->predicate);
    if (control->trips) add(found, *control->trips);
    return found;
  }
  ValueIds found;
  for (const Expr& part : composit::parts_of(expressions(std::get<Nest>(step).statement)))
    if (part.kind() == ExprKind::load) add(found, ValueId(part.number()));
  return found;
}

ValueIds writes(const Step& step) {
  if (const auto* invocation = std::get_if<Invocation>(&step)) return invocation->results;
  if (const auto* call = std::get_if<RuntimeCall>(&step)) return call->results;
  if (const auto* control = std::get_if<Control>(&step)) {
    ValueIds found = control->results;
    found.insert(found.end(), control->next.begin(), control->next.end());
    return found;
  }
  ValueIds found;
  for (const composit::Store& store : std::get<Nest>(step).statement.stores)
    add(found, ValueId(store.result));
  return found;
}

const Origin& origin_of(const Step& step) {
  return std::visit([](const auto& one) -> const Origin& { return one.origin; }, step);
}

std::vector<FunctionId> callees(const Step& step) {
  if (const auto* invocation = std::get_if<Invocation>(&step)) return {invocation->function};
  if (const auto* control = std::get_if<Control>(&step)) return control->functions;
  return {};
}

void renumber_callees(Program& program, FunctionId first) {
  for (Routine& function : program.functions)
    for (Step& step : function.steps) {
      if (auto* call = std::get_if<Invocation>(&step))
        call->function += call->function >= first ? 1 : 0;
      if (auto* control = std::get_if<Control>(&step))
        for (FunctionId& number : control->functions) number += number >= first ? 1 : 0;
    }
}

bool has_effect(const Program& program, const Step& step) {
  if (const auto* call = std::get_if<RuntimeCall>(&step)) return call->effect;
  const std::vector<FunctionId> called = callees(step);
  return std::any_of(called.begin(), called.end(), [&](FunctionId callee) {
    const std::vector<Step>& steps = program.functions[callee].steps;
    return std::any_of(steps.begin(), steps.end(),
                       [&](const Step& inner) { return has_effect(program, inner); });
  });
}

std::string place_of(const Origin& origin) {
  std::string text = origin.operation;
  if (!origin.source.empty()) text += " at " + origin.source;
  if (!origin.module.empty()) text += " (" + origin.module + ")";
  return text;
}

std::string short_name(const Origin& origin) {
  const size_t colons = origin.operation.find("::");
  const std::string name =
      colons == std::string::npos ? origin.operation : origin.operation.substr(colons + 2);
  return name.substr(0, name.find('.'));
}

std::vector<Expr> expressions(const Statement& statement) {
  std::vector<Expr> all = {statement.domain};
  for (const auto* list : {&statement.init, &statement.body, &statement.combine})
    all.insert(all.end(), list->begin(), list->end());
  for (const composit::Store& store : statement.stores) {
    all.insert(all.end(), store.at.begin(), store.at.end());
    all.push_back(store.value);
  }
  return all;
}

Statement with_expressions(Statement statement, const std::vector<Expr>& expressions) {
  size_t next = 0;
  statement.domain = expressions[next++];
  for (auto* list : {&statement.init, &statement.body, &statement.combine})
    for (Expr& x : *list) x = expressions[next++];
  for (composit::Store& store : statement.stores) {
    for (Expr& x : store.at) x = expressions[next++];
    store.value = expressions[next++];
  }
  return statement;
}

}  // namespace flashlight::loops
