#include "flashlight/cuda/views.h"

#include <algorithm>
#include <functional>
#include <set>

#include "composit/ir/attribute.h"
#include "flashlight/loops/statement.h"

namespace flashlight::cuda {

using composit::Attribute;
using composit::AxisKind;
using composit::Expr;
using composit::ExprKind;

namespace {

struct View {
  ValueId of;
  Strided strided;
};

// The result of a nest as a view of what it reads; nothing if it computes.
std::optional<View> view_of(const Nest& nest, const Routine& routine) {
  const Statement& statement = nest.statement;
  const auto is_parallel = [](const auto& axis) { return axis.kind == AxisKind::parallel; };
  if (statement.domain.defined() || statement.stores.size() != 1 || statement.stores[0].add ||
      !std::all_of(statement.axes.begin(), statement.axes.end(), is_parallel))
    return std::nullopt;
  const composit::Store& store = statement.stores[0];
  const Expr& load = store.value;
  const Value& result = routine.values[value_of(store)];
  if (load.kind() != ExprKind::load || load.dtype() != result.type.dtype) return std::nullopt;
  const Value& source = routine.values[value_of(load)];
  if (source.role == Role::constant || source.constant.defined()) return std::nullopt;

  View view = {value_of(load), {}};
  const std::vector<int64_t> steps = composit::contiguous_strides(source.type.sizes);
  std::set<size_t> found;
  for (size_t i = 0; i < store.at.size(); ++i) {
    const Expr& index = store.at[i];
    int64_t stride = 0;  // of an axis that repeats the elements
    if (index.kind() == ExprKind::axis) {
      for (size_t j = 0; j < steps.size(); ++j)
        if (is_axis(load[j], AxisId(index.number()))) {
          if (!found.insert(j).second) return std::nullopt;
          stride += steps[j];
        }
    } else if (!composit::is_literal(index, 0) || result.type.sizes[i] != 1) {
      return std::nullopt;
    }
    view.strided.sizes.push_back(result.type.sizes[i]);
    view.strided.strides.push_back(stride);
  }
  for (size_t j = 0; j < steps.size(); ++j)
    if (found.count(j) == 0 && !composit::is_literal(load[j], 0)) return std::nullopt;
  return view;
}

// Visits the tensors among the arguments of a call: positions among its values, and sizes.
bool all_tensors(const RuntimeCall& call,
                 const std::function<bool(size_t, const std::vector<int64_t>&)>& holds) {
  const auto one = [&](const Attribute& option) {
    if (option.is_none()) return true;
    const std::vector<int64_t> numbers = composit::to_ints(option);
    return holds(static_cast<size_t>(numbers[0]), {numbers.begin() + 1, numbers.end()});
  };
  for (size_t i = 0; i < call.options.size(); ++i) {
    if (!call.schema->arguments[i].is_tensor()) continue;
    const Attribute& option = call.options[i].value;
    const auto* list = call.schema->arguments[i].list ? option.get_if<composit::List>() : nullptr;
    if (list == nullptr ? !one(option) : !std::all_of(list->items.begin(), list->items.end(), one))
      return false;
  }
  return true;
}

// The views that can stand for the results of nests, by the number of the nest's step.
std::map<StepId, View> find_views(const Routine& routine) {
  std::map<ValueId, std::vector<StepId>> readers, writers;
  for (const StepId step : routine.steps.ids()) {
    for (const ValueId value : reads(routine.steps[step])) readers[value].push_back(step);
    for (const ValueId value : writes(routine.steps[step])) writers[value].push_back(step);
  }
  std::map<StepId, View> views;
  for (const StepId step : routine.steps.ids()) {
    const auto* nest = std::get_if<Nest>(&routine.steps[step]);
    if (nest == nullptr) continue;
    const auto view = view_of(*nest, routine);
    if (!view) continue;
    const ValueId value = value_of(nest->statement.stores[0]);
    const auto can_read = [&](StepId reader) {
      const RuntimeCall* call = aten_call_in(routine.steps[reader]);
      return call != nullptr && all_tensors(*call, [&](size_t position, const auto& sizes) {
               return call->arguments.at(position) != value ||
                      view->strided.strides_for(sizes).has_value();
             });
    };
    const std::vector<StepId>& its_readers = readers[value];
    const std::vector<StepId>& sources = writers[view->of];
    if (routine.values[value].role == Role::temporary && writers[value].size() == 1 &&
        !its_readers.empty() && std::all_of(its_readers.begin(), its_readers.end(), can_read) &&
        std::all_of(sources.begin(), sources.end(), [&](StepId one) { return one < step; }))
      views.emplace(step, *view);
  }
  return views;
}

}  // namespace

const RuntimeCall* aten_call_in(const Step& step) {
  const auto* call = std::get_if<RuntimeCall>(&step);
  return call != nullptr && call->schema != nullptr ? call : nullptr;
}

std::optional<std::vector<int64_t>> Strided::strides_for(const std::vector<int64_t>& others) const {
  std::vector<int64_t> all;
  size_t next = 0;
  const auto skip = [&] {
    while (next < sizes.size() && sizes[next] == 1) ++next;
  };
  for (const int64_t size : others) {
    skip();
    if (size == 1) {
      all.push_back(1);
      continue;
    }
    if (next == sizes.size() || sizes[next] != size) return std::nullopt;
    all.push_back(strides[next++]);
  }
  skip();
  return next == sizes.size() ? std::optional(all) : std::nullopt;
}

Views::Views(Routine& routine) {
  const std::map<StepId, View> found = find_views(routine);
  std::map<ValueId, const View*> by_value;
  for (const auto& [step, view] : found)
    by_value[value_of(std::get<Nest>(routine.steps[step]).statement.stores[0])] = &view;
  Table<StepId, Step> steps;
  for (const StepId step : routine.steps.ids()) {
    if (found.count(step) > 0) continue;
    Step kept = std::move(routine.steps[step]);
    if (auto* call = std::get_if<RuntimeCall>(&kept))
      for (size_t i = 0; i < call->arguments.size(); ++i)
        if (const auto view = by_value.find(call->arguments[i]); view != by_value.end()) {
          call->arguments[i] = view->second->of;
          views_[{StepId(steps.size()), i}] = view->second->strided;
        }
    steps.push_back(std::move(kept));
  }
  routine.steps = std::move(steps);
}

const Strided* Views::find(StepId step, size_t position) const {
  const auto view = views_.find({step, position});
  return view == views_.end() ? nullptr : &view->second;
}

}  // namespace flashlight::cuda
