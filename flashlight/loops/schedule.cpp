#include "flashlight/loops/schedule.h"

#include <algorithm>
#include <optional>

#include "composit/op/affine.h"
#include "flashlight/loops/contraction.h"
#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

using composit::AxisKind;
using composit::Store;

// The indices of one access of a value.
using Index = std::vector<Expr>;

struct Access {
  StepId step;
  Index at;
};

class Scheduler {
 public:
  explicit Scheduler(const Routine& function) : function_(function) {
    schedule_.order.resize(function.steps.size());
    schedule_.shared.resize(function.steps.size());
    shareable_.resize(function.steps.size());
    for (const Step& step : function.steps) {
      reads_.push_back(reads(step));
      writes_.push_back(writes(step));
    }
    accesses_.resize(function.values.size());
    for (const StepId i : function.steps.ids()) enter(i);
  }

  Schedule run() {
    StepIds steps(function_.steps.size());
    for (size_t i = 0; i < steps.size(); ++i) steps[i] = StepId(i);
    schedule_.items = group(steps, 0);
    if (function_.in_parts) share_outermost();
    for (const ValueId value : function_.values.ids())
      schedule_.storage.push_back(storage_of(value));
    return std::move(schedule_);
  }

 private:
  const Nest* nest(StepId step) const { return std::get_if<Nest>(&function_.steps[step]); }

  void enter(StepId step) {
    const Nest* one = nest(step);
    if (one == nullptr) {
      for (ValueId value : reads_[step]) accesses_[value].push_back({step, {}});
      for (ValueId value : writes_[step]) accesses_[value].push_back({step, {}});
      return;
    }
    for (const Expr& part : composit::parts_of(expressions(one->statement)))
      if (part.kind() == ExprKind::load)
        accesses_[value_of(part)].push_back({step, part.arguments()});
    for (const Store& store : one->statement.stores)
      accesses_[value_of(store)].push_back({step, store.at});
    order_axes(step, one->statement);
  }

  // Orders axes as they are stored, the last index innermost. Of a matrix product, other nests can
  // share only the batch, and outer axes that leave products large.
  void order_axes(StepId step, const Statement& statement) {
    AxisIds& order = schedule_.order[step];
    const auto add = [&](AxisId axis) {
      const bool parallel = statement.axes[axis].kind == AxisKind::parallel;
      if (parallel && !contains(order, axis)) order.push_back(axis);
    };
    const auto product = contraction_of(statement);
    if (product)
      for (AxisId axis : product->batch) add(axis);
    for (const Expr& index : statement.stores[0].at)
      for (AxisId axis : axes_in(index)) add(axis);
    for (const AxisId axis : axes_of(statement)) add(axis);
    shareable_[step] = product ? product->batch.size() + product->outer.size() : order.size();
    if (!product && wants_reduction_outside(statement)) --shareable_[step];
  }

  // ---- grouping ---------------------------------------------------------------------------------

  struct Group {
    StepIds steps;
    int64_t extent = 0;  // 0: not a loop
  };

  int64_t extent_at(StepId step, size_t depth) const {
    if (depth >= shareable_[step]) return 0;
    return nest(step)->statement.axes[schedule_.order[step][depth]].extent;
  }

  std::vector<Item> group(const StepIds& steps, size_t depth) {
    std::vector<Group> groups;
    for (StepId step : steps) {
      const std::optional<size_t> found = group_for(groups, step, depth);
      if (found)
        join(groups, *found, step, depth);
      else
        groups.push_back({{step}, extent_at(step, depth)});
    }
    std::vector<Item> items;
    for (Group& one : groups) {
      if (one.steps.size() == 1) {
        items.push_back({.step = one.steps[0]});
        schedule_.shared[one.steps[0]] = depth;
      } else {
        items.push_back({.extent = one.extent, .body = group(one.steps, depth + 1)});
      }
    }
    return items;
  }

  // Makes the outermost loop of a single step an item, as if it were shared.
  void share_outermost() {
    if (schedule_.items.size() != 1 || schedule_.items[0].is_loop()) return;
    const StepId step = schedule_.items[0].step;
    if (nest(step) == nullptr || shareable_[step] == 0) return;
    schedule_.items = {{.extent = extent_at(step, 0), .body = schedule_.items}};
    schedule_.shared[step] = 1;
  }

  // The group whose loop `step` can run in, and which writes a value that `step` touches.
  std::optional<size_t> group_for(const std::vector<Group>& groups, StepId step, size_t depth) {
    const int64_t extent = extent_at(step, depth);
    for (size_t i = groups.size(); i-- > 0;) {
      if (extent > 1 && groups[i].extent == extent && fits(groups[i], step, depth)) return i;
      if (depends(groups[i], step)) return std::nullopt;
    }
    return std::nullopt;
  }

  // Adds `step` to the loop of group `number`, and with it all earlier groups that it depends on
  // and that can move there.
  void join(std::vector<Group>& groups, size_t number, StepId step, size_t depth) {
    for (size_t i = number; i-- > 0;) {
      const Group& other = groups[i];
      const bool small =
          other.steps.size() + groups[number].steps.size() < function_.most_steps_in_loop;
      const bool same = small && other.extent == groups[number].extent && depends(other, step);
      if (!same || !fits(other, step, depth) || !can_move(groups, i, number, depth)) continue;
      StepIds steps = other.steps;
      steps.insert(steps.end(), groups[number].steps.begin(), groups[number].steps.end());
      std::sort(steps.begin(), steps.end());
      groups[number].steps = std::move(steps);
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
      --number;
    }
    groups[number].steps.push_back(step);
  }

  // True if group `from` may run in the loop of the later group `to`.
  bool can_move(const std::vector<Group>& groups, size_t from, size_t to, size_t depth) const {
    for (size_t between = from + 1; between <= to; ++between)
      for (StepId step : groups[between].steps) {
        if (!depends(groups[from], step)) continue;
        if (between < to || !fits(groups[from], step, depth)) return false;
      }
    return true;
  }

  bool depends(const Group& group, StepId step) const {
    return std::any_of(group.steps.begin(), group.steps.end(), [&](StepId before) {
      return overlap(writes_[before], reads_[step]) || overlap(writes_[before], writes_[step]);
    });
  }

  bool fits(const Group& group, StepId step, size_t depth) const {
    if (group.steps.size() >= function_.most_steps_in_loop) return false;
    bool linked = false;
    for (StepId before : group.steps) {
      for (ValueId value : writes_[before]) {
        if (!contains(reads_[step], value) && !contains(writes_[step], value)) continue;
        linked = true;
        if (!aligned(value, before, step, depth)) return false;
      }
    }
    return linked;
  }

  // True if `before` and `step` touch the same part of `value` in a round of the loop at `depth`.
  bool aligned(ValueId value, StepId before, StepId step, size_t depth) const {
    return dimension_of(value, {before, step}, depth).has_value();
  }

  // The dimension of `value` that all accesses of `steps` index with the loop at `depth`.
  std::optional<size_t> dimension_of(ValueId value, const StepIds& steps, size_t depth) const {
    const size_t rank = function_.values[value].type.rank();
    for (size_t dimension = 0; dimension < rank; ++dimension) {
      const bool all =
          std::all_of(accesses_[value].begin(), accesses_[value].end(), [&](const Access& access) {
            if (!contains(steps, access.step)) return true;
            return !access.at.empty() && depth < schedule_.order[access.step].size() &&
                   is_axis(access.at[dimension], schedule_.order[access.step][depth]);
          });
      if (all) return dimension;
    }
    return std::nullopt;
  }

  // ---- storage ----------------------------------------------------------------------------------

  static void find(const std::vector<Item>& items, StepId step, std::vector<size_t>& path,
                   std::vector<size_t>& found) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (!items[i].is_loop()) {
        if (items[i].step == step) found = path;
        continue;
      }
      path.push_back(i);
      find(items[i].body, step, path, found);
      path.pop_back();
    }
  }
  std::vector<size_t> path_of(StepId step) const {
    std::vector<size_t> path, found;
    find(schedule_.items, step, path, found);
    return found;
  }

  Storage storage_of(ValueId value) const {
    const Value& one = function_.values[value];
    if (one.role != Role::temporary || accesses_[value].empty()) return whole_storage(one.type);
    Storage storage;
    storage.kept.assign(one.type.rank(), true);
    StepIds steps;
    for (const Access& access : accesses_[value]) steps.push_back(access.step);
    storage.home = path_of(steps[0]);
    for (StepId step : steps) {
      const std::vector<size_t> path = path_of(step);
      const auto apart =
          std::mismatch(storage.home.begin(), storage.home.end(), path.begin(), path.end());
      storage.home.erase(apart.first, storage.home.end());
    }
    for (size_t depth = 0; depth < storage.home.size(); ++depth)
      if (const auto dimension = dimension_of(value, steps, depth))
        storage.kept[*dimension] = false;
    for (size_t i = 0; i < storage.kept.size(); ++i)
      if (storage.kept[i]) storage.elements *= one.type.sizes[i];
    return storage;
  }

  const Routine& function_;
  Schedule schedule_;
  Table<StepId, size_t> shareable_;
  Table<StepId, ValueIds> reads_, writes_;  // by step
  Table<ValueId, std::vector<Access>> accesses_;
};

void add_steps(const std::vector<Item>& items, StepIds& steps) {
  for (const Item& item : items) {
    if (!item.is_loop()) steps.push_back(item.step);
    add_steps(item.body, steps);
  }
}

// True if the last index of a load grows by 1 with `axis`. An index that is not affine belongs to a
// tensor that is read in another shape, where most steps are 1: for that, returns `otherwise` if it
// depends on `axis`.
bool runs_along(const Expr& load, AxisId axis, bool otherwise, composit::IndexAnalysis& analysis) {
  if (load.arguments().empty()) return false;
  const Expr& last = load.arguments().back();
  const auto index = analysis.affine(last);
  if (!index) return otherwise && composit::depends_on(last, ExprKind::axis, axis);
  return index->coefficients[axis] == 1;
}

}  // namespace

Schedule schedule_of(const Routine& function) { return Scheduler(function).run(); }

Storage whole_storage(const Type& type) {
  Storage storage;
  storage.kept.assign(type.rank(), true);
  storage.elements = type.numel();
  return storage;
}

StepIds order_of_steps(const Schedule& schedule) {
  StepIds steps;
  add_steps(schedule.items, steps);
  return steps;
}

bool wants_reduction_outside(const Statement& statement) {
  if (!fold_function(statement) || statement.stores.size() != 1 || statement.stores[0].add)
    return false;
  const auto dimensions = axes_of_dimensions(statement.stores[0].at);
  if (!dimensions || dimensions->empty() || contraction_of(statement)) return false;
  composit::IndexAnalysis analysis(statement.axes);
  bool along_result = false;
  for (const Expr& part : composit::parts_of(statement.body)) {
    if (part.kind() != ExprKind::load) continue;
    along_result |= runs_along(part, dimensions->back(), false, analysis);
    for (const AxisId axis : axes_of(statement))
      if (statement.axes[axis].kind == AxisKind::reduction &&
          runs_along(part, axis, true, analysis))
        return false;
  }
  return along_result;
}

}  // namespace flashlight::loops
