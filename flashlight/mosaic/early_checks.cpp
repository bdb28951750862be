#include "flashlight/mosaic/early_checks.h"

#include <algorithm>
#include <optional>

#include "composit/op/affine.h"
#include "flashlight/loops/statement.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using loops::Nest;
using loops::Routine;
using loops::Statement;

constexpr const char* kOperation = "check_index";

DataIndex data_index(const Statement& statement, const Expr& at, int64_t size) {
  AxisIds axes = loops::axes_in(at);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  DataIndex index = {at, {}, size};
  for (const AxisId axis : axes) index.extents.push_back(statement.axes[axis].extent);
  index.at = composit::replace(at, [&](const Expr& part) {
    if (part.kind() != ExprKind::axis) return Expr();
    const auto own = std::find(axes.begin(), axes.end(), loops::axis_of(part));
    return Expr::axis(static_cast<size_t>(own - axes.begin()));
  });
  return index;
}

// Those among the indices of one element.
void add_indices(const Routine& routine, const Statement& statement, ValueId value,
                 const std::vector<Expr>& at, std::vector<DataIndex>& indices) {
  const std::vector<int64_t>& sizes = routine.values[value].type.sizes;
  for (size_t i = 0; i < at.size(); ++i)
    if (composit::has_loads(at[i])) indices.push_back(data_index(statement, at[i], sizes[i]));
}

// Loads that happen whatever the data is: not those under a condition.
std::vector<Expr> surely_loaded(const std::vector<Expr>& expressions) {
  std::vector<Expr> loads, left = expressions;
  while (!left.empty()) {
    const Expr x = left.back();
    left.pop_back();
    if (!x.defined()) continue;
    if (x.kind() == ExprKind::load) loads.push_back(x);
    if (x.is(composit::Function::select) || x.is(composit::Function::logical_and) ||
        x.is(composit::Function::logical_or))
      left.push_back(x[0]);
    else
      left.insert(left.end(), x.arguments().begin(), x.arguments().end());
  }
  return loads;
}

class EarlyChecks {
 public:
  EarlyChecks(Routine& routine, const std::map<ValueId, ValueId>& updates)
      : routine_(routine), updates_(updates) {}

  void run() {
    for (const StepId i : routine_.steps.ids())
      for (const ValueId value : loops::writes(routine_.steps[i])) last_written_[value] = i;
    Table<StepId, loops::Step> steps;
    size_t place = 0;  // of the next check among them
    for (const StepId i : routine_.steps.ids()) {
      loops::Step& step = routine_.steps[i];
      const auto* nest = std::get_if<Nest>(&step);
      if (nest == nullptr) {
        checked_.clear();
        first_write_.reset();
      } else {
        if (!first_write_ && is_update(*nest)) {
          first_write_ = i;
          place = steps.size();
        }
        std::vector<Nest> checks = first_write_ ? checks_of(*nest) : std::vector<Nest>();
        steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(place),
                     std::make_move_iterator(checks.begin()),
                     std::make_move_iterator(checks.end()));
        place += checks.size();
      }
      steps.push_back(std::move(step));
    }
    routine_.steps = std::move(steps);
  }

 private:
  bool is_update(const Nest& nest) const {
    return std::any_of(
        nest.statement.stores.begin(), nest.statement.stores.end(),
        [&](const composit::Store& store) { return updates_.contains(value_of(store)); });
  }
  // True if the value is what it will be before the first write: the caller's, or computed.
  bool is_known(ValueId value) const {
    const auto written = last_written_.find(value);
    return written == last_written_.end() || written->second < *first_write_;
  }
  bool is_known(const Expr& x) const {
    const std::vector<Expr> parts = composit::parts_of({x});
    return std::all_of(parts.begin(), parts.end(), [&](const Expr& part) {
      return part.kind() != ExprKind::load || is_known(value_of(part));
    });
  }

  std::vector<Nest> checks_of(const Nest& nest) {
    std::vector<Nest> checks;
    const Statement& one = nest.statement;
    if (one.domain.defined() || loops::iterations(one) == 0) return checks;
    for (const composit::Store& store : one.stores) {
      // The old value has the elements that the new one will have.
      const auto input = updates_.find(value_of(store));
      if (input != updates_.end() &&
          routine_.values[input->second].type.sizes == routine_.values[value_of(store)].type.sizes)
        add_checks(nest, input->second, store.at, checks);
    }
    for (const Expr& load : surely_loaded(loops::expressions(one)))
      if (is_known(value_of(load))) add_checks(nest, value_of(load), load.arguments(), checks);
    return checks;
  }

  // `value` is one of which the elements are known to be there.
  void add_checks(const Nest& nest, ValueId value, const std::vector<Expr>& at,
                  std::vector<Nest>& checks) {
    for (size_t i = 0; i < at.size(); ++i) {
      if (!composit::has_loads(at[i]) || !is_known(at[i])) continue;
      const DataIndex index =
          data_index(nest.statement, at[i], routine_.values[value].type.sizes[i]);
      if (loops::contains(checked_, index)) continue;
      checked_.push_back(index);
      checks.push_back(check(index, value, i, nest.origin));
    }
  }

  // Reads `value` at the index along one dimension, and at 0 along the others.
  Nest check(const DataIndex& index, ValueId value, size_t dimension, loops::Origin origin) {
    const composit::Type type = routine_.values[value].type;
    const ValueId element = routine_.values.add(
        {composit::tensor_type(type.dtype, index.extents), loops::Role::temporary, "checked"});
    routine_.kept[element] = "is read for its index, before memory of the caller's is written";
    origin.operation = kOperation;
    Nest nest = {{}, std::move(origin)};
    std::vector<Expr> to;
    for (size_t i = 0; i < index.extents.size(); ++i) {
      nest.statement.axes.push_back({"", index.extents[i]});
      to.push_back(Expr::axis(i));
    }
    std::vector<Expr> from(type.rank(), Expr(int64_t{0}));
    from[dimension] = index.at;
    nest.statement.stores.push_back({element, to, Expr::load(value, type.dtype, from)});
    return nest;
  }

  Routine& routine_;
  const std::map<ValueId, ValueId>& updates_;
  std::vector<DataIndex> checked_;
  std::optional<StepId> first_write_;  // since the last call: the step that may write an input
  std::map<ValueId, StepId> last_written_;
};

}  // namespace

loops::Program check_early(loops::Program program, const std::map<ValueId, ValueId>& updates) {
  if (!updates.empty()) EarlyChecks(program.functions.back(), updates).run();
  return program;
}

bool is_early_check(const loops::Step& step) {
  const auto* nest = std::get_if<Nest>(&step);
  return nest != nullptr && nest->origin.operation == kOperation;
}

std::vector<DataIndex> checked_by(const Routine& routine, const loops::Step& step) {
  std::vector<DataIndex> indices;
  if (!is_early_check(step)) return indices;
  const Statement& one = std::get<Nest>(step).statement;
  const Expr& load = one.stores[0].value;
  add_indices(routine, one, value_of(load), load.arguments(), indices);
  return indices;
}

bool refuses(const Routine& routine, const loops::Step& step,
             const std::vector<DataIndex>& checked) {
  const auto* nest = std::get_if<Nest>(&step);
  if (nest == nullptr) return true;
  const Statement& one = nest->statement;
  if (!loops::may_refuse(one)) return false;
  if (loops::divides_by_data(one)) return true;
  std::vector<DataIndex> indices;
  for (const composit::Store& store : one.stores)
    add_indices(routine, one, value_of(store), store.at, indices);
  for (const Expr& part : composit::parts_of(loops::expressions(one)))
    if (part.kind() == ExprKind::load)
      add_indices(routine, one, value_of(part), part.arguments(), indices);
  return !std::all_of(indices.begin(), indices.end(),
                      [&](const DataIndex& index) { return loops::contains(checked, index); });
}

}  // namespace flashlight::mosaic
