#include "flashlight/loops/widen.h"

#include <algorithm>
#include <map>
#include <set>

#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

using composit::DType;
using composit::ExprKind;
using composit::Function;

// The neighbour of a 16-bit float is another one than that of a float32.
bool asks_for_neighbours(const Statement& statement) {
  const std::vector<Expr> parts = composit::parts_of(expressions(statement));
  return std::any_of(parts.begin(), parts.end(), [](const Expr& part) {
    return part.is(Function::nextafter) && composit::is_half(part.dtype());
  });
}

Expr wide(const Expr& part) {
  if (!composit::is_half(part.dtype())) return Expr();
  switch (part.kind()) {
    case ExprKind::literal:
      return Expr::literal(part.value(), DType::float32);
    case ExprKind::accumulator:
      return Expr::accumulator(part.number(), DType::float32);
    case ExprKind::left:
      return Expr::left(part.number(), DType::float32);
    case ExprKind::right:
      return Expr::right(part.number(), DType::float32);
    default:  // elements, and what is rounded
      return composit::cast(part, DType::float32);
  }
}

bool has_halves(const Routine& routine) {
  return std::any_of(routine.values.begin(), routine.values.end(),
                     [](const Value& value) { return composit::is_half(value.type.dtype); });
}

template <class Change>
Routine changed(Routine routine, const Change& change) {
  for (Step& step : routine.steps)
    if (auto* nest = std::get_if<Nest>(&step)) {
      nest->statement = change(std::move(nest->statement));
      nest->recognised = nullptr;
    }
  return routine;
}

// to = from, element by element.
Nest rounding(const composit::Type& type, ValueId to, ValueId from, const Origin& origin) {
  Statement statement = zeros(type, to);
  composit::Store& store = statement.stores[0];
  store.value = composit::cast(Expr::load(from, DType::float32, store.at), type.dtype);
  return {std::move(statement), origin};
}

// The values of 16-bit floats that nests add to, each with the last nest that writes it.
std::map<ValueId, StepId> half_sums(const Routine& routine) {
  std::map<ValueId, StepId> last;
  for (const bool adds : {true, false})
    for (const StepId step : routine.steps.ids())
      if (const auto* nest = std::get_if<Nest>(&routine.steps[step]))
        for (const composit::Store& store : nest->statement.stores) {
          const ValueId value = value_of(store);
          if (!composit::is_half(routine.values[value].type.dtype)) continue;
          if (adds ? store.add : last.contains(value)) last.insert_or_assign(value, step);
        }
  return last;
}

}  // namespace

Routine with_wide_sums(Routine routine) {
  const std::map<ValueId, StepId> last = half_sums(routine);
  if (last.empty()) return routine;
  std::map<ValueId, ValueId> wide;
  for (const auto& [value, step] : last)
    wide.emplace(
        value,
        routine.values.add({composit::tensor_type(DType::float32, routine.values[value].type.sizes),
                            Role::temporary,
                            "sum",
                            {}}));
  Table<StepId, Step> steps;
  for (const StepId step : routine.steps.ids()) {
    std::vector<Nest> complete;
    if (auto* nest = std::get_if<Nest>(&routine.steps[step]))
      for (composit::Store& store : nest->statement.stores) {
        const ValueId value = value_of(store);
        const auto found = wide.find(value);
        if (found == wide.end()) continue;
        store.result = found->second;
        store.value = composit::cast(store.value, DType::float32);
        if (last.at(value) == step)
          complete.push_back(
              rounding(routine.values[value].type, value, found->second, nest->origin));
      }
    steps.push_back(std::move(routine.steps[step]));
    for (Nest& nest : complete) steps.push_back(std::move(nest));
  }
  routine.steps = std::move(steps);
  return routine;
}

Routine with_wide_arithmetic(Routine routine) {
  if (!has_halves(routine)) return routine;
  return changed(std::move(routine), [](Statement statement) {
    return asks_for_neighbours(statement) ? statement : replaced(std::move(statement), wide);
  });
}

Routine with_wide_temporaries(Routine routine) {
  std::set<ValueId> widened;
  for (const ValueId value : routine.values.ids())
    if (routine.values[value].role == Role::temporary &&
        composit::is_half(routine.values[value].type.dtype))
      widened.insert(value);
  for (const Step& step : routine.steps) {
    const auto* nest = std::get_if<Nest>(&step);
    if (nest != nullptr && !asks_for_neighbours(nest->statement)) continue;
    for (const auto& values : {reads(step), writes(step)})
      for (const ValueId value : values) widened.erase(value);
  }
  if (widened.empty()) return routine;
  for (const ValueId value : widened) routine.values[value].type.dtype = DType::float32;
  return changed(std::move(routine), [&](Statement statement) {
    return replaced(std::move(statement), [&](const Expr& part) {
      // The load itself is seen first, and what it is cast to stays as it is.
      const bool is_one = part.kind() == ExprKind::load && widened.contains(value_of(part));
      return is_one ? Expr::load(part.number(), DType::float32, part.arguments()) : Expr();
    });
  });
}

}  // namespace flashlight::loops
