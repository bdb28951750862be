#include "flashlight/mosaic/in_place.h"

#include <algorithm>

#include "composit/op/affine.h"
#include "composit/op/stores.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/kernels/form.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using loops::Statement;

std::vector<Expr> loads_of(const std::vector<Expr>& expressions, ValueId value) {
  std::vector<Expr> loads;
  for (const Expr& part : composit::parts_of(expressions))
    if (part.kind() == ExprKind::load && part.number() == value) loads.push_back(part);
  return loads;
}

// A step of a kernel of loops, and the loops around it.
struct Place {
  StepId step;
  std::vector<size_t> path;  // of items, to the innermost loop that it shares
};
void add_places(const std::vector<loops::Item>& items, std::vector<size_t>& path,
                std::vector<Place>& places) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_loop()) {
      places.push_back({items[i].step, path});
      continue;
    }
    path.push_back(i);
    add_places(items[i].body, path, places);
    path.pop_back();
  }
}

class Loops {
 public:
  Loops(const loops::Routine& routine, const loops::Schedule& schedule, const StepIds& needless,
        ValueId result, ValueId operand)
      : routine_(routine),
        schedule_(schedule),
        keeps_(!needless.empty()),
        result_(result),
        operand_(operand) {
    std::vector<size_t> path;
    add_places(schedule_.items, path, places_);
    std::erase_if(places_, [&](const Place& one) { return loops::contains(needless, one.step); });
  }

  bool run() const {
    std::vector<size_t> writers, readers;  // places
    for (size_t i = 0; i < places_.size(); ++i) {
      if (loops::contains(loops::writes(step(i)), operand_)) return false;
      if (loops::contains(loops::writes(step(i)), result_)) writers.push_back(i);
      if (loops::contains(loops::reads(step(i)), operand_)) readers.push_back(i);
    }
    if (keeps_ && readers.empty()) return true;
    if (writers.size() != 1 || statement(writers[0]) == nullptr) return false;
    if (keeps_ && readers != writers) return false;  // other loops are shared then
    return writes_at_once(writers[0]) &&
           std::all_of(readers.begin(), readers.end(), [&](size_t reader) {
             return reader == writers[0] ? reads_before_it_writes(reader)
                                         : stays_ahead(reader, writers[0]);
           });
  }

 private:
  const loops::Step& step(size_t place) const { return routine_.steps[places_[place].step]; }
  const Statement* statement(size_t place) const {
    const auto* nest = std::get_if<loops::Nest>(&step(place));
    return nest == nullptr ? nullptr : &nest->statement;
  }

  // True if no element of the result is written before the nest computes it.
  bool writes_at_once(size_t writer) const {
    const Statement& one = *statement(writer);
    return one.stores.size() == 1 && !one.stores[0].add && !one.domain.defined() &&
           !loops::has_axes(one, composit::AxisKind::scan);
  }
  bool reads_before_it_writes(size_t writer) const {
    const Statement& one = *statement(writer);
    return loops::is_elementwise(one) && reads_own_place(one, one.stores[0], operand_);
  }

  // True if a reader that runs before the writer keeps to the same part in each shared round.
  bool stays_ahead(size_t reader, size_t writer) const {
    if (reader > writer) return false;
    const std::vector<size_t>&a = places_[reader].path, &b = places_[writer].path;
    const auto shared = static_cast<size_t>(
        std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    if (shared > 0 && statement(reader) == nullptr) return false;
    for (size_t depth = 0; depth < shared; ++depth)
      if (!has_same_part(reader, writer, depth)) return false;
    return true;
  }
  // True if one dimension is the loop at `depth` in all accesses.
  bool has_same_part(size_t reader, size_t writer, size_t depth) const {
    const composit::Store& store = statement(writer)->stores[0];
    const std::vector<Expr> loads = loads_of(loops::expressions(*statement(reader)), operand_);
    for (size_t dimension = 0; dimension < store.at.size(); ++dimension)
      if (is_loop(store.at[dimension], writer, depth) &&
          std::all_of(loads.begin(), loads.end(),
                      [&](const Expr& load) { return is_loop(load[dimension], reader, depth); }))
        return true;
    return false;
  }
  bool is_loop(const Expr& index, size_t place, size_t depth) const {
    return index.kind() == ExprKind::axis &&
           index.number() == schedule_.order[places_[place].step][depth];
  }

  const loops::Routine& routine_;
  const loops::Schedule& schedule_;
  const bool keeps_;  // what no step writes
  const ValueId result_, operand_;
  std::vector<Place> places_;  // in the order of the text
};

// True if the nest writes all of `operand` to the same places of `result`, and does nothing else.
bool copies(const loops::Routine& routine, const loops::Step& step, ValueId result,
            ValueId operand) {
  const auto* nest = std::get_if<loops::Nest>(&step);
  if (nest == nullptr || nest->statement.stores.size() != 1) return false;
  const Statement& one = nest->statement;
  if (one.stores[0].add || one.domain.defined() || !one.init.empty()) return false;
  const Expr& value = one.stores[0].value;
  // Dimensions of one element have no axis.
  return loops::writes(step) == ValueIds{result} && value.kind() == ExprKind::load &&
         value.number() == operand && reads_own_place(one, one.stores[0], operand) &&
         loops::iterations(one) == routine.values[result].type.numel();
}

}  // namespace

StepIds needless_steps(const loops::Routine& routine, const StepIds& steps, ValueId result,
                       ValueId operand) {
  const auto copy = std::find_if(steps.begin(), steps.end(), [&](StepId step) {
    return copies(routine, routine.steps[step], result, operand);
  });
  if (copy == steps.end()) return {};
  StepIds needless;
  for (auto step = steps.begin(); step <= copy; ++step) {
    if (loops::contains(loops::reads(routine.steps[*step]), result)) return {};
    if (loops::writes(routine.steps[*step]) == ValueIds{result}) needless.push_back(*step);
  }
  return needless.size() == steps.size() ? StepIds() : needless;
}

bool only_copies(const loops::Routine& routine, const StepIds& steps, ValueId result,
                 ValueId operand) {
  return !steps.empty() && copies(routine, routine.steps[steps.back()], result, operand) &&
         std::all_of(steps.begin(), steps.end(), [&](StepId step) {
           return loops::writes(routine.steps[step]) == ValueIds{result} &&
                  !loops::contains(loops::reads(routine.steps[step]), result);
         });
}

bool reads_own_place(const Statement& statement, const composit::Store& store, ValueId value) {
  const std::vector<Expr> loads = loads_of(loops::expressions(statement), value);
  const bool same = std::all_of(loads.begin(), loads.end(), [&](const Expr& load) {
    return std::equal(load.arguments().begin(), load.arguments().end(), store.at.begin(),
                      store.at.end(), [](const Expr& a, const Expr& b) { return a.same(b); });
  });
  composit::IndexAnalysis analysis(statement.axes);
  return same && composit::injective(store.at, composit::store_axes(statement), analysis);
}

bool loops_may_overwrite(const loops::Routine& routine, const loops::Schedule& schedule,
                         const StepIds& needless, ValueId result, ValueId operand) {
  return Loops(routine, schedule, needless, result, operand).run();
}

bool may_overwrite(const Plan& plan, const Kernel& kernel, ValueId result, ValueId operand) {
  const composit::Type &a = plan.routine.values[result].type,
                       &b = plan.routine.values[operand].type;
  return a.dtype == b.dtype && a.sizes == b.sizes && kernel.form->may_overwrite != nullptr &&
         kernel.form->may_overwrite(plan, kernel, result, operand);
}

}  // namespace flashlight::mosaic
