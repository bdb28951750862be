#include "flashlight/mosaic/copies.h"

#include <algorithm>
#include <optional>

#include "flashlight/loops/statement.h"

namespace flashlight::mosaic {

using composit::Expr;

ValueId add_copy(loops::Routine& routine, ValueId value, const std::string& kept) {
  loops::Value copy = routine.values[value];
  copy.role = loops::Role::temporary;
  copy.constant = {};
  const ValueId added = routine.values.add(std::move(copy));
  routine.kept[added] = kept;
  return added;
}

loops::Nest copying(const loops::Routine& routine, ValueId from, ValueId to) {
  const composit::Type& type = routine.values[from].type;
  loops::Nest nest = {{}, {"copy", "", ""}};
  std::vector<Expr> at;
  for (size_t i = 0; i < type.rank(); ++i) {
    nest.statement.axes.push_back({"", type.sizes[i]});
    at.push_back(Expr::axis(i));
  }
  nest.statement.stores.push_back({to, at, Expr::load(from, type.dtype, at)});
  nest.statement = loops::simplified(std::move(nest.statement));
  return nest;
}

void read_instead(loops::Nest& nest, ValueId value, ValueId copy) {
  nest.statement = loops::replaced(std::move(nest.statement), [&](const Expr& part) {
    const bool read = part.kind() == composit::ExprKind::load && part.number() == value;
    return read ? Expr::load(copy, part.dtype(), part.arguments()) : Expr();
  });
}

void write_instead(loops::Nest& nest, ValueId value, ValueId copy) {
  for (composit::Store& store : nest.statement.stores)
    if (store.result == value) store.result = copy;
}

bool writes_all(const loops::Routine& routine, const loops::Statement& statement) {
  const composit::Store& store = statement.stores[0];
  int64_t places = 1;
  std::vector<size_t> seen;
  for (const Expr& index : store.at) {
    if (index.kind() != composit::ExprKind::axis || loops::contains(seen, index.number())) continue;
    seen.push_back(index.number());
    places *= statement.axes[index.number()].extent;
  }
  return places == routine.values[value_of(store)].type.numel();
}

bool touch_instead(loops::Routine& routine, ValueId value, ValueId copy) {
  const bool is_result = routine.values[value].role == loops::Role::result;
  const auto has = [&](const ValueIds& values) { return loops::contains(values, value); };
  std::optional<size_t> place;  // of the copying
  for (const StepId i : routine.steps.ids()) {
    loops::Step& step = routine.steps[i];
    if (!has(loops::reads(step)) && !has(loops::writes(step))) continue;
    auto* nest = std::get_if<loops::Nest>(&step);
    if (nest == nullptr && is_result) return false;
    if (nest == nullptr) continue;
    read_instead(*nest, value, copy);
    write_instead(*nest, value, copy);
    if (is_result || !place) place = is_result ? i + 1 : i;
  }
  if (place)
    routine.steps.insert(routine.steps.begin() + static_cast<std::ptrdiff_t>(*place),
                         is_result ? copying(routine, copy, value) : copying(routine, value, copy));
  return place.has_value();
}

}  // namespace flashlight::mosaic
