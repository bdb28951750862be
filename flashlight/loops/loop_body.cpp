#include "flashlight/loops/loop_body.h"

#include <algorithm>
#include <map>
#include <set>

#include "flashlight/loops/schedule.h"
#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

using Index = std::vector<Expr>;

Index without(Index index, std::optional<size_t> dimension) {
  if (dimension) index.erase(index.begin() + static_cast<std::ptrdiff_t>(*dimension));
  return index;
}

class LoopBodyExtractor {
 public:
  LoopBodyExtractor(Routine& whole, const StepIds& steps)
      : whole_(whole), steps_(steps), schedule_(schedule_of(whole)) {}

  std::optional<Routine> run(const std::string& name, FunctionId number) {
    for (StepId step : steps_) {
      if (!std::holds_alternative<Nest>(whole_.steps[step]) || schedule_.shared[step] == 0)
        return std::nullopt;
      find_accesses(step);
    }
    body_.name = name;
    body_.is_part = body_.is_loop_body = true;
    map_.kind = Control::Kind::map;
    map_.functions = {number};
    map_.length = nest(steps_[0]).axes[axis(steps_[0])].extent;
    map_.origin = origin_of(whole_.steps[steps_[0]]);
    for (const auto& [value, accesses] : accesses_)
      if (!take(value)) return std::nullopt;
    body_.inputs.insert(body_.inputs.end(), outside_.begin(), outside_.end());
    for (StepId step : steps_) {
      auto round = round_of(step);
      if (!round) return std::nullopt;
      body_.steps.push_back(Nest{std::move(*round), origin_of(whole_.steps[step])});
    }
    whole_.steps[steps_[0]] = std::move(map_);
    const auto first = whole_.steps.begin() + static_cast<std::ptrdiff_t>(steps_[0]);
    whole_.steps.erase(first + 1, first + static_cast<std::ptrdiff_t>(steps_.size()));
    return std::move(body_);
  }

 private:
  using Access = std::pair<StepId, Index>;

  const Statement& nest(StepId step) const { return std::get<Nest>(whole_.steps[step]).statement; }
  AxisId axis(StepId step) const { return schedule_.order[step][0]; }

  void find_accesses(StepId step) {
    for (const Expr& part : composit::parts_of(expressions(nest(step))))
      if (part.kind() == ExprKind::load)
        accesses_[value_of(part)].emplace_back(step, part.arguments());
    for (const composit::Store& store : nest(step).stores) {
      accesses_[value_of(store)].emplace_back(step, store.at);
      written_.insert(value_of(store));
    }
  }

  // The dimension of `value` that the loop's axis indexes, if it is the same in all accesses.
  std::optional<size_t> dimension_of(ValueId value) const {
    for (size_t dimension = 0; dimension < whole_.values[value].type.rank(); ++dimension)
      if (std::all_of(
              accesses_.at(value).begin(), accesses_.at(value).end(), [&](const Access& access) {
                const Expr& index = access.second[dimension];
                return index.kind() == ExprKind::axis && axis_of(index) == axis(access.first);
              }))
        return dimension;
    return std::nullopt;
  }

  bool is_used_elsewhere(ValueId value) const {
    for (const StepId step : whole_.steps.ids()) {
      if (contains(steps_, step)) continue;
      for (const auto& list : {reads(whole_.steps[step]), writes(whole_.steps[step])})
        if (contains(list, value)) return true;
    }
    return false;
  }

  // Declares `value`, or its slice for one round, in the body; false if it has no such slice.
  bool take(ValueId value) {
    const Value& outer = whole_.values[value];
    const bool written = written_.contains(value), constant = outer.role == Role::constant;
    const bool given = written && (outer.role == Role::result || is_used_elsewhere(value));
    std::optional<size_t> dimension = dimension_of(value);
    if (constant || (!written && dimension != size_t{0})) dimension.reset();
    if (written && !dimension) return false;
    if (given && dimension != size_t{0}) return false;
    Value inner = outer;
    inner.role = constant  ? Role::constant
                 : given   ? Role::result
                 : written ? Role::temporary
                           : Role::argument;
    composit::Dims sizes = outer.type.sizes;
    if (dimension) sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(*dimension));
    inner.type = composit::tensor_type(outer.type.dtype, sizes);
    const ValueId number = body_.values.next();
    body_.values.push_back(std::move(inner));
    places_[value] = {number, dimension};
    if (given) {
      body_.results.push_back(number);
      map_.results.push_back(value);
    } else if (!written && !constant) {
      (dimension ? body_.inputs : outside_).push_back(number);
      (dimension ? map_.sequences : map_.outside).push_back(value);
    }
    return true;
  }

  // The statement of `step` for one round; nothing if it needs the index of the round.
  std::optional<Statement> round_of(StepId step) const {
    Statement round = replaced(nest(step), [&](const Expr& part) {
      if (part.kind() != ExprKind::load) return Expr();
      const auto [number, dimension] = places_.at(value_of(part));
      return Expr::load(number, part.dtype(), without(part.arguments(), dimension));
    });
    for (composit::Store& store : round.stores) {
      const auto [number, dimension] = places_.at(value_of(store));
      store.result = number;
      store.at = without(store.at, dimension);
    }
    for (const Expr& x : expressions(round)) {
      if (contains(axes_in(x), axis(step))) return std::nullopt;
    }
    round.axes[axis(step)].extent = 1;
    return simplified(std::move(round));
  }

  Routine& whole_;
  const StepIds& steps_;
  const Schedule schedule_;
  std::map<ValueId, std::vector<Access>> accesses_;  // by value
  std::set<ValueId> written_;
  Routine body_;
  Control map_;
  ValueIds outside_;  // inputs of the body that are the same in each round
  std::map<ValueId, std::pair<ValueId, std::optional<size_t>>> places_;  // by value, in the body
};

}  // namespace

std::optional<Routine> extract_loop_body(Routine& function, const StepIds& steps,
                                         const std::string& name, FunctionId number) {
  return LoopBodyExtractor(function, steps).run(name, number);
}

}  // namespace flashlight::loops
