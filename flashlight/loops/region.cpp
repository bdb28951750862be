#include "flashlight/loops/region.h"

#include <algorithm>

#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

using composit::AxisKind;

// Leaves only the accumulation of a sum over `axis`.
Statement without_stores(Statement statement, AxisId axis) {
  if (statement.axes[axis].kind == AxisKind::reduction) statement.stores.clear();
  return statement;
}

// Finds the dimension of each value that a statement indexes with one of its axes.
class Places {
 public:
  Places(const Statement& statement, AxisId axis) : axis_(axis) {
    const std::vector<Expr> all = expressions(statement);
    for (const Expr& part : composit::parts_of(all)) {
      if (part.kind() == ExprKind::load)
        enter(value_of(part), part.arguments());
      else
        for (const Expr& argument : part.arguments()) fits_ &= !is_axis(argument, axis);
    }
    fits_ &= !contains(axes_in(statement.domain), axis);
    for (const auto* list : {&statement.init, &statement.body, &statement.combine})
      for (const Expr& x : *list) fits_ &= !is_axis(x, axis);
    for (const composit::Store& store : statement.stores) {
      fits_ &= !is_axis(store.value, axis);
      enter(value_of(store), store.at);
      fits_ &= dimensions_[value_of(store)].has_value();
    }
  }

  // True if the axis is used only as an index, for each value always of the same dimension.
  bool fits() const { return fits_; }
  // By value; nothing if the axis does not index it.
  const std::map<ValueId, std::optional<size_t>>& dimensions() const { return dimensions_; }

 private:
  void enter(ValueId value, const std::vector<Expr>& at) {
    std::optional<size_t> found;
    for (size_t i = 0; i < at.size(); ++i) {
      if (!is_axis(at[i], axis_)) continue;
      fits_ &= !found;
      found = i;
    }
    const auto [place, is_new] = dimensions_.emplace(value, found);
    fits_ &= is_new || place->second == found;
  }

  const AxisId axis_;
  bool fits_ = true;
  std::map<ValueId, std::optional<size_t>> dimensions_;
};

class Grower {
 public:
  Grower(const Program& program, const Routine& function)
      : program_(program), function_(function), touching_(function.values.size()) {
    for (const StepId step : function.steps.ids()) {
      reads_.push_back(reads(function.steps[step]));
      writes_.push_back(writes(function.steps[step]));
      for (const auto* list : {&reads_.back(), &writes_.back()})
        for (ValueId value : *list) touching_[value].push_back(step);
    }
  }

  Region run(ValueId value, size_t dimension) {
    region_.extent = function_.values[value].type.sizes[dimension];
    region_.dimensions[value] = dimension;
    open_ = {value};
    while (!open_.empty()) {
      const ValueId next = open_.back();
      open_.pop_back();
      for (StepId step : touching_[next])
        if (!region_.has(step)) join(step, next);
    }
    put_in_order();
    return std::move(region_);
  }

 private:
  const Statement* statement(StepId step) const {
    const auto* nest = std::get_if<Nest>(&function_.steps[step]);
    return nest == nullptr ? nullptr : &nest->statement;
  }

  // The axis with which `step` indexes the region's dimension of `value`.
  std::optional<AxisId> axis_at(StepId step, ValueId value) const {
    const size_t dimension = region_.dimensions.at(value);
    for (const composit::Store& store : statement(step)->stores)
      if (store.result == value && store.at[dimension].kind() == ExprKind::axis)
        return axis_of(store.at[dimension]);
    for (const Expr& part : composit::parts_of(expressions(*statement(step)))) {
      const bool here = part.kind() == ExprKind::load && part.number() == value;
      if (here && part[dimension].kind() == ExprKind::axis) return axis_of(part[dimension]);
    }
    return std::nullopt;
  }

  bool can_split(const Statement& statement, AxisId axis) const {
    const composit::Axis& one = statement.axes[axis];
    if (one.extent != region_.extent || one.kind == AxisKind::scan) return false;
    return one.kind == AxisKind::parallel ||
           (is_sum(statement) && !has_axes(statement, AxisKind::scan));
  }

  // Adds `step` to the region if it fits; then the steps that touch its temporaries are tried.
  void join(StepId step, ValueId value) {
    if (statement(step) == nullptr) return;
    const auto axis = axis_at(step, value);
    if (!axis || !can_split(*statement(step), *axis)) return;
    const Places places(without_stores(*statement(step), *axis), *axis);
    if (!places.fits()) return;
    for (const auto& [other, dimension] : places.dimensions()) {
      if (!dimension) continue;
      const auto known = region_.dimensions.find(other);
      if (known != region_.dimensions.end() && known->second != *dimension) return;
      if (function_.values[other].type.sizes[*dimension] != region_.extent) return;
    }
    region_.axes[step] = *axis;
    for (const auto& [other, dimension] : places.dimensions())
      if (dimension && region_.dimensions.emplace(other, *dimension).second &&
          function_.values[other].role == Role::temporary)
        open_.push_back(other);
  }

  bool depends(StepId later, StepId earlier) const {
    return overlap(writes_[earlier], reads_[later]) || overlap(writes_[earlier], writes_[later]) ||
           overlap(reads_[earlier], writes_[later]);
  }
  bool depends_on_any(StepId step, const StepIds& steps) const {
    return std::any_of(steps.begin(), steps.end(),
                       [&](StepId earlier) { return depends(step, earlier); });
  }

  // True if `step` touches only a block of each of the region's values.
  bool keeps_to_blocks(StepId step) const {
    const Places places(region_.inside(function_, step), region_.axes.at(step));
    return std::all_of(places.dimensions().begin(), places.dimensions().end(), [&](const auto& at) {
      const auto known = region_.dimensions.find(at.first);
      return known == region_.dimensions.end() ? !at.second : at.second == known->second;
    });
  }

  // True if `step` can run block by block, and waits for no step that comes after all blocks.
  bool is_member(StepId step) const {
    if (!region_.has(step) || !keeps_to_blocks(step)) return false;
    const Step inside = Nest{region_.inside(function_, step), {}};
    const auto waits = [&](StepId earlier) {
      const auto& written = writes_[earlier];
      return overlap(written, reads(inside)) || overlap(written, writes(inside)) ||
             overlap(reads_[earlier], writes(inside));
    };
    return std::none_of(region_.after.begin(), region_.after.end(), waits);
  }

  // Steps that have to wait for all blocks come after them, all others before. Effects keep their
  // order.
  void put_in_order() {
    StepIds inside;
    bool effect_after = false;
    for (const StepId step : function_.steps.ids()) {
      if (is_member(step)) {
        (region_.is_sum(function_, step) ? region_.after : inside).push_back(step);
        continue;
      }
      region_.axes.erase(step);
      const bool effect = has_effect(program_, function_.steps[step]);
      const bool after = depends_on_any(step, region_.after) || depends_on_any(step, inside) ||
                         (effect && effect_after);
      effect_after |= after && effect;
      (after ? region_.after : region_.before).push_back(step);
    }
  }

  const Program& program_;
  const Routine& function_;
  Table<ValueId, StepIds> touching_;        // by value: steps
  Table<StepId, ValueIds> reads_, writes_;  // by step
  ValueIds open_;
  Region region_;
};

}  // namespace

bool Region::is_sum(const Routine& function, StepId step) const {
  const Statement& statement = std::get<Nest>(function.steps[step]).statement;
  return statement.axes[axes.at(step)].kind == AxisKind::reduction;
}

Statement Region::inside(const Routine& function, StepId step) const {
  return without_stores(std::get<Nest>(function.steps[step]).statement, axes.at(step));
}

bool Region::is_local(const Routine& function, ValueId value) const {
  if (function.values[value].role != Role::temporary || !dimensions.contains(value)) return false;
  for (const StepId step : function.steps.ids()) {
    Step outside = function.steps[step];
    if (has(step) && !is_sum(function, step)) continue;
    if (has(step)) {  // the epilogue
      Statement& sum = std::get<Nest>(outside).statement;
      sum.domain = Expr();
      sum.body = sum.init = sum.combine = {};
    }
    if (contains(reads(outside), value) || contains(writes(outside), value)) return false;
  }
  return true;
}

Region region_of(const Program& program, const Routine& function, ValueId value, size_t dimension) {
  return Grower(program, function).run(value, dimension);
}

}  // namespace flashlight::loops
